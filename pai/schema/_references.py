"""Local references of a JSON Schema."""

from __future__ import annotations

from urllib.parse import unquote

from ._json import JsonObject, JsonValue

__all__ = ("follow", "pointed_at")


def pointed_at(root: JsonObject, reference: str) -> JsonValue:
    """What ``#/…`` points at within *root*; None for nothing or another kind of reference."""
    if reference != "#" and not reference.startswith("#/"):
        return None
    target: JsonValue = root
    for part in unquote(reference[1:]).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, dict):
            target = target.get(key)
        elif isinstance(target, list) and key.isdecimal() and int(key) < len(target):
            target = target[int(key)]
        else:
            return None
    return target


def follow(root: JsonObject, schema: JsonValue) -> JsonValue:
    """The schema that *schema* stands for, when it is nothing but a reference and words."""
    seen: set[str] = set()
    while isinstance(schema, dict) and isinstance(reference := schema.get("$ref"), str):
        if reference in seen:
            return {}
        seen.add(reference)
        schema = pointed_at(root, reference)
    return schema
