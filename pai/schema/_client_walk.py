"""
A client's JSON Schema, looked at before it is compiled: where it points, and what it would cost.

A validator follows references and branches without remembering where it has been, so a small schema
can be made to take years: twenty steps of ``allOf`` with two references each are a million visits.
What is counted here is how often one place of a value can be visited at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from ._json import MAX_DEPTH, JsonObject
from ._references import pointed_at
from ._refusal import Found, Way

__all__ = ("MAX_VISITS", "schema_faults")

MAX_VISITS = 1000
"""How often a schema may visit one place of a value."""

_SAME_PLACE = ("not", "if", "then", "else")
_SAME_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_PLACE_MAPS = ("dependentSchemas", "dependencies")
# Of each group, one keyword alone meets any one place: what has a key of its own is not additional.
_BELOW_GROUPS = (
    ("properties", "additionalProperties", "unevaluatedProperties", "propertyNames"),
    ("prefixItems", "items", "additionalItems", "unevaluatedItems"),
    ("contains",),
)
_OTHER_REFERENCES = ("$dynamicRef", "$recursiveRef")


class _Node:
    """One subschema: what else it visits in the same place, and what one level below."""

    __slots__ = ("below", "same", "visits", "way")

    def __init__(self, way: Way) -> None:
        self.way = way
        self.same: list[_Node] = []
        # Of each group only one member can meet any one place.
        self.below: list[list[_Node]] = []
        self.visits = 0


class _Walk:
    def __init__(self, root: JsonObject) -> None:
        self.found: list[Found] = []
        self.nodes: dict[int, _Node] = {}
        self._root = root
        self._anchors: dict[str, JsonObject] = {}
        self._references: list[tuple[_Node, str, Way]] = []

    def run(self) -> list[Found]:
        self._node(self._root, ())
        # The list grows while targets that lie outside of all keywords are walked.
        for node, text, way in self._references:
            target = self._target(text)
            if target is None:
                self.found.append((way, "only references within the schema (#/...) are taken"))
            elif isinstance(target, dict):
                node.same.append(self._node(target, way))
        if not self.found:
            self._count()
        return self.found

    def _node(self, schema: JsonObject, way: Way) -> _Node:
        known = self.nodes.get(id(schema))
        if known is not None:
            return known
        node = self.nodes[id(schema)] = _Node(way)
        self._mentions(schema, node, way)
        for name in _SAME_PLACE:
            node.same += self._nodes(schema.get(name), (*way, name))
        for name in _SAME_PLACE_LISTS:
            node.same += self._listed(schema.get(name), (*way, name))
        for name in _SAME_PLACE_MAPS:
            node.same += self._mapped(schema.get(name), (*way, name))
        for group in _BELOW_GROUPS:
            node.below.append([n for name in group for n in self._below(schema, name, way)])
        patterns = self._mapped(schema.get("patternProperties"), (*way, "patternProperties"))
        node.below += [[pattern] for pattern in patterns]
        for name in ("$defs", "definitions"):
            self._mapped(schema.get(name), (*way, name))
        return node

    def _mentions(self, schema: JsonObject, node: _Node, way: Way) -> None:
        reference = schema.get("$ref")
        if isinstance(reference, str):
            self._references.append((node, reference, (*way, "$ref")))
        self.found.extend(
            ((*way, name), f"{name} is not taken; use $ref")
            for name in _OTHER_REFERENCES
            if name in schema
        )
        if way and "$id" in schema:
            self.found.append(((*way, "$id"), "$id is only taken at the root"))
        anchor = schema.get("$anchor")
        if isinstance(anchor, str):
            self._anchors[anchor] = schema

    def _below(self, schema: JsonObject, name: str, way: Way) -> list[_Node]:
        value, here = schema.get(name), (*way, name)
        if name == "properties":
            return self._mapped(value, here)
        return self._nodes(value, here) + self._listed(value, here)

    def _nodes(self, value: object, way: Way) -> list[_Node]:
        return [self._node(value, way)] if isinstance(value, dict) else []

    def _listed(self, value: object, way: Way) -> list[_Node]:
        if not isinstance(value, list):
            return []
        return [
            self._node(item, (*way, index))
            for index, item in enumerate(value)
            if isinstance(item, dict)
        ]

    def _mapped(self, value: object, way: Way) -> list[_Node]:
        if not isinstance(value, dict):
            return []
        return [
            self._node(item, (*way, key)) for key, item in value.items() if isinstance(item, dict)
        ]

    def _target(self, reference: str) -> object:
        anchor = self._anchors.get(unquote(reference[1:])) if reference.startswith("#") else None
        return anchor or pointed_at(self._root, reference)

    def _count(self) -> None:
        order = list(self._inner_first())
        if self.found:
            return
        # visits: here first, then one level further down each time.
        for node in order:
            node.visits = 1 + sum(same.visits for same in node.same)
            if self._too_many(node):
                return
        earlier: dict[int, int] = {}
        for _ in range(MAX_DEPTH):
            before = {id(node): node.visits for node in order}
            if before == earlier:
                return
            earlier = before
            for node in order:
                node.visits = sum(same.visits for same in node.same) + sum(
                    max((before[id(below)] for below in group), default=0) for group in node.below
                )
                if self._too_many(node):
                    return

    def _too_many(self, node: _Node) -> bool:
        if node.visits > MAX_VISITS:
            self.found.append(
                (node.way, f"too intricate: it visits one place more than {MAX_VISITS} times")
            )
        return node.visits > MAX_VISITS

    def _inner_first(self) -> Iterator[_Node]:
        """All nodes, those that another visits in the same place before it."""
        done: set[int] = set()
        for start in list(self.nodes.values()):
            if id(start) in done:
                continue
            trail = [(start, iter(start.same))]
            on_trail = {id(start)}
            while trail:
                node, rest = trail[-1]
                inner = next((n for n in rest if id(n) not in done), None)
                if inner is None:
                    trail.pop()
                    on_trail.discard(id(node))
                    done.add(id(node))
                    yield node
                elif id(inner) in on_trail:
                    self.found.append((node.way, "refers to itself without going deeper"))
                    return
                else:
                    trail.append((inner, iter(inner.same)))
                    on_trail.add(id(inner))


def schema_faults(schema: JsonObject) -> list[Found]:
    """What keeps *schema* from being compiled safely; its keywords are not checked here."""
    return _Walk(schema).run()
