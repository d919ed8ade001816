"""Calls that a provider wrote and then refused itself: the model is told, and the run goes on."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from pai.errors import ModelError
from pai.models._openai.encode import dump, loads

__all__ = ("RejectedCall", "Written", "written_calls")

_TAGGED = re.compile(r"<function[=/]([\w.-]+)[^{<]*(.*?)(?:</?function>?|$)", re.DOTALL)
_NAMED = ("arguments", "parameters", "input")


class RejectedCall(ModelError):
    """
    The provider refused a call that its model wrote.

    Args:
        generation: What the model wrote, word for word; it is in no text of the error.
    """

    generation = ""


class Written(NamedTuple):
    """A call as the model wrote it: its input as text."""

    name: str
    text: str


def written_calls(generation: str, tools: Collection[str]) -> list[Written]:
    """
    The calls in what a model wrote; none if it can't be told which tool was meant.

    Args:
        generation: JSON with name and arguments, or tags as Llama models write them.
        tools: Names of the tools that were offered.
    """
    found = list(_of_value(_value(generation)))
    if not found:
        found = [Written(name, text.strip()) for name, text in _TAGGED.findall(generation)]
    if found:
        return found
    named = [name for name in tools if re.search(rf"\b{re.escape(name)}\b", generation)]
    return [Written(named[0], generation)] if len(named) == 1 else []


def _value(text: str) -> object:
    stripped = re.sub(r"^\s*<[\w|]+>|</?[\w|]+>\s*$", "", text)
    try:
        return loads(stripped)
    except ValueError:
        return None


def _of_value(value: object) -> Iterator[Written]:
    if isinstance(value, list):
        for item in value:
            yield from _of_value(item)
    elif isinstance(value, dict):
        if "tool_calls" in value:
            yield from _of_value(value["tool_calls"])
            return
        function = value.get("function")
        if isinstance(function, dict):
            value = function
        name = value.get("name")
        if isinstance(name, str) and name:
            given: object = next((value[key] for key in _NAMED if key in value), {})
            yield Written(name, given if isinstance(given, str) else dump(given).decode())
