"""Calls in plain words: which tool is meant, and with which input."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from pai.protocol import ToolSpec
from pai.schema import JsonObject, JsonValue

__all__ = ("Call", "PairTool", "fill", "named_calls", "tool_for")

_WORDS = {
    "+": ("add", "adds", "sum", "plus", "addition"),
    "-": ("subtract", "subtracts", "minus", "difference", "sub", "subtraction"),
    "*": ("multiply", "multiplies", "times", "product", "mul", "multiplication"),
    "/": ("divide", "divides", "quotient", "div", "division"),
}
_FILLERS = frozenset(
    re.findall(
        r"\w+",
        "a about also an and at by can could do for from give in is it me my now of on please run"
        " the then to tool use using what with would you",
    )
)
_PAIR = r"(?<!\w){name}\s*[:=]\s*(\"[^\"]*\"|'[^']*'|[^\s,;]+)"
_TOKEN = re.compile(r"\"([^\"]*)\"|'([^']*)'|([^\s,;()]+)")
_DEPTH = 6


@attrs.frozen
class Call:
    """A tool and its input."""

    tool: str
    input: JsonObject


@attrs.frozen
class PairTool:
    """A tool that takes two numbers."""

    name: str
    first: str
    second: str
    whole: bool

    def pair(self, left: float, right: float) -> JsonObject:
        """Its input."""
        return {self.first: self._fit(left), self.second: self._fit(right)}

    def _fit(self, value: float) -> float:
        return int(value) if self.whole and float(value).is_integer() else value


def tool_for(sign: str, tools: Sequence[ToolSpec]) -> PairTool | None:
    """The first tool of two numbers whose name, else whose description, is about *sign*."""
    pairs = [(tool, pair) for tool in tools if (pair := _pair_tool(tool)) is not None]
    words = set(_WORDS[sign])
    texts = [(tool.name, pair) for tool, pair in pairs]
    texts += [(tool.description, pair) for tool, pair in pairs]
    fits = (pair for text, pair in texts if words & set(re.findall(r"[a-z]+", text.lower())))
    return next(fits, None)


def _pair_tool(tool: ToolSpec) -> PairTool | None:
    fields = _properties(tool.input_schema)
    names = [name for name in fields if name in _required(tool.input_schema)] or list(fields)
    kinds = [_kind(fields[name], tool.input_schema) for name in names]
    if len(names) != 2 or not set(kinds) <= {"integer", "number"}:
        return None
    return PairTool(tool.name, names[0], names[1], whole="integer" in kinds)


def named_calls(text: str, tools: Sequence[ToolSpec]) -> tuple[list[Call], str]:
    """
    Calls of the tools that *text* names, in its order.

    Returns:
        The calls, or else what is missing for the first one.
    """
    places: list[tuple[int, int, ToolSpec]] = []
    for tool in tools:
        pattern = re.escape(tool.name).replace("_", r"[_\s]").replace(r"\-", r"[-\s]")
        if found := re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE):
            places.append((found.start(), found.end(), tool))
    places.sort(key=lambda place: place[:2])
    calls: list[Call] = []
    for at, (_, end, tool) in enumerate(places):
        until = places[at + 1][0] if at + 1 < len(places) else len(text)
        value, missing = _input(text[end:until], tool)
        if missing:
            example = " ".join(f"{name}=..." for name in missing)
            return [], f"{tool.name} needs {', '.join(missing)}: say {tool.name} {example}"
        calls.append(Call(tool.name, value))
    return calls, ""


def _input(text: str, tool: ToolSpec) -> tuple[JsonObject, list[str]]:
    """The input in the words behind a tool's name, and the required fields that it lacks."""
    fields = _properties(tool.input_schema)
    value: JsonObject = {}
    for name in fields:
        if found := re.search(_PAIR.format(name=re.escape(name)), text, re.IGNORECASE):
            fitted = _fit(found[1].strip("\"'").rstrip(".?!"), fields[name], tool.input_schema)
            if fitted is not None:
                value[name] = fitted
            text = text[: found.start()] + " " + text[found.end() :]
    tokens = [quoted or single or bare for quoted, single, bare in _TOKEN.findall(text)]
    bare = [word.strip(".?!:") for word in tokens if word.lower().strip(".?!:") not in _FILLERS]
    for name in fields:
        if name in value:
            continue
        for word in bare:
            if word and (fitted := _fit(word, fields[name], tool.input_schema)) is not None:
                value[name] = fitted
                bare.remove(word)
                break
    return value, [name for name in _required(tool.input_schema) if name not in value]


def _fit(word: str, schema: JsonObject, root: JsonObject) -> JsonValue:
    """*word* as a value of the schema's type; ``None`` if it is none."""
    schema = _resolved(schema, root)
    choices = schema.get("enum")
    if isinstance(choices, list):
        return next((each for each in choices if str(each).lower() == word.lower()), None)
    kind = _kind(schema, root)
    if kind == "boolean":
        return {"true": True, "yes": True, "false": False, "no": False}.get(word.lower())
    if kind in {"integer", "number"}:
        try:
            return int(word) if kind == "integer" or word.lstrip("-").isdigit() else float(word)
        except ValueError:
            return None
    return word if kind == "string" else None


def _properties(schema: JsonObject) -> dict[str, JsonObject]:
    fields = schema.get("properties")
    fields = fields if isinstance(fields, dict) else {}
    return {name: field for name, field in fields.items() if isinstance(field, dict)}


def _required(schema: JsonObject) -> list[str]:
    names = schema.get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _resolved(schema: JsonObject, root: JsonObject) -> JsonObject:
    """The schema behind a local reference, and the first member of a union that isn't null."""
    for _ in range(_DEPTH):
        target = schema.get("$ref")
        if isinstance(target, str) and target.startswith("#/"):
            found: JsonValue = root
            for key in target[2:].split("/"):
                found = found.get(key) if isinstance(found, dict) else None
            schema = found if isinstance(found, dict) else {}
            continue
        members = schema.get("anyOf") or schema.get("oneOf")
        if not isinstance(members, list):
            break
        some = [each for each in members if isinstance(each, dict) and each.get("type") != "null"]
        schema = some[0] if some else {}
    return schema


def _kind(schema: JsonObject, root: JsonObject) -> str | None:
    kind = _resolved(schema, root).get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), None)
    return kind if isinstance(kind, str) else None


def fill(schema: JsonObject, text: str) -> JsonValue:
    """A value that fits *schema* as far as its types go, with what *text* offers."""
    numbers = re.findall(r"-?\d+(?:\.\d+)?", text)
    return _filled(schema, schema, text, numbers, _DEPTH)


def _filled(
    schema: JsonObject, root: JsonObject, text: str, numbers: list[str], depth: int
) -> JsonValue:
    schema = _resolved(schema, root)
    choices = schema.get("enum")
    if "const" in schema or "default" in schema:
        return schema.get("const", schema.get("default"))
    if isinstance(choices, list) and choices:
        return next((each for each in choices if str(each).lower() in text.lower()), choices[0])
    kind = _kind(schema, root)
    if kind == "object" or "properties" in schema:
        return {
            name: _filled(field, root, text, numbers, depth - 1)
            for name, field in _properties(schema).items()
            if name in _required(schema) and depth > 0
        }
    if kind in {"integer", "number"}:
        number = float(numbers.pop(0)) if numbers else _least(schema)
        return int(number) if kind == "integer" or number.is_integer() else number
    least = schema.get("minItems")
    if kind == "array":
        item = schema.get("items")
        count = least if isinstance(least, int) and isinstance(item, dict) and depth > 0 else 0
        return [
            _filled(item if isinstance(item, dict) else {}, root, text, numbers, depth - 1)
            for _ in range(count)
        ]
    if kind == "boolean":
        return False
    return text if kind == "string" else None


def _least(schema: Mapping[str, JsonValue]) -> float:
    least = schema.get("minimum")
    return float(least) if isinstance(least, int | float) else 0.0
