"""
The page ``plugins/values``: what hooks are handed and return.

The page stands as it is rendered here; a test compares it, and ``python -m _ext.values`` in this
folder's parent writes it anew.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import get_args

import pai
from pai import contexts, protocol

from .api import parameters_of
from .hooks import ARGUMENT, type_of
from .markup import to_markdown

PAGE = Path(__file__).parents[1] / "plugins" / "values.md"

HANDED: tuple[type, ...] = (
    contexts.RunContext,
    contexts.StepContext,
    contexts.ToolCallContext,
    contexts.ToolResultContext,
    contexts.Records,
    pai.ModelRequest,
    protocol.ToolSpec,
    pai.Message,
    pai.Metadata,
    contexts.ThreadRef,
    contexts.AgentRef,
    contexts.AsideItem,
    contexts.StepOutcome,
    contexts.RunOutcome,
    pai.Usage,
    pai.Signal,
)
RETURNED: tuple[type, ...] = (
    contexts.RunPatch,
    contexts.StepPatch,
    contexts.Respond,
    pai.SystemMessage,
    pai.MetadataPatch,
)
DECISIONS: tuple[type, ...] = (
    contexts.ReplaceInput,
    contexts.SkipCall,
    contexts.DenyCall,
    contexts.ToolOutput,
    contexts.ToolFailure,
    contexts.ReplaceValue,
)

WORDS = {"CallOutcome": protocol.CallOutcome, "FinishReason": protocol.FinishReason}

HEAD = """\
# What hooks are handed and return

All of it comes from `pai`. Contexts are read-only: hooks change things by what they return, and by the methods named here.
Frozen values are changed with `attrs.evolve(value, field=...)`.
"""

PARTS = """\
## Parts of a stream

What the streams of `wrap_model_call` and `transform_step_stream` carry. For each *start* comes an *end*
with the same id, with deltas between; ids are unique within the step; a `StepFinish` is the last part.
"""


def render_values() -> str:
    """Render the page."""
    lines = [HEAD, "## Handed", ""]
    for cls in HANDED:
        lines += _class(cls)
    lines += ["## Returned", ""]
    for cls in RETURNED:
        lines += _class(cls)
    lines += ["### Decisions", "", *_list(DECISIONS), PARTS, *_list(get_args(protocol.StreamPart))]
    lines += ["## Parts of a message", "", *_list(get_args(protocol.MessagePart))]
    lines += ["## Words", "", "| | |", "| --- | --- |"]
    for name, words in WORDS.items():
        lines.append(f"| `{name}` | {', '.join(f'`{word}`' for word in get_args(words))} |")
    return "\n".join(lines).rstrip() + "\n"


def _class(cls: type) -> list[str]:
    """Render what code may use of a class: its fields, then its methods."""
    told: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        told |= dict(ARGUMENT.findall((vars(base).get("__doc__") and inspect.getdoc(base)) or ""))
    rows = [
        f"| `{name}: {type_of(annotation)}` | {to_markdown(told.get(name) or _later(cls, name))} |"
        for name, annotation in _fields(cls)
    ]
    for name, item in _members(cls):
        if isinstance(item, property):
            rows.append(f"| `{name}` | {_summary(item)} |")
        else:
            wait = "await " if inspect.iscoroutinefunction(item) else ""
            rows.append(f"| `{wait}{name}{parameters_of(item)}` | {_summary(item)} |")
    return [f"### `{cls.__name__}`", "", _summary(cls), "", "| | |", "| --- | --- |", *rows, ""]


def _fields(cls: type) -> Iterator[tuple[str, str]]:
    """Yield names and types, those of base classes first."""
    for base in reversed(cls.__mro__):
        for name, annotation in vars(base).get("__annotations__", {}).items():
            if name[0] != "_" and name != "changes":
                yield name, str(annotation)


def _later(cls: type, name: str) -> str:
    """Say so of a field that is declared and does nothing yet."""
    if cls not in RETURNED:
        return ""
    try:
        cls(**{name: object()})
    except pai.InvalidInput as error:
        return "Not available yet." if "not available yet" in str(error) else ""
    except TypeError:
        return ""
    return ""


def _members(cls: type) -> Iterator[tuple[str, property | FunctionType]]:
    for base in reversed(cls.__mro__[:-1]):
        for name, item in vars(base).items():
            if name[0] == "_" or name.endswith("_of") or name in {"asking", "set"}:
                continue  # those are the loop's
            if isinstance(item, (property, FunctionType)) and item.__doc__:
                yield name, item


def _list(classes: tuple[type, ...]) -> list[str]:
    """Render small values as one table: how each is made, and what it is."""
    rows = [
        f"| `{cls.__name__}{re.sub(r', (provider_data|_)[^,)]*', '', parameters_of(cls))}` |"
        f" {_summary(cls)} |"
        for cls in classes
    ]
    return ["| | |", "| --- | --- |", *rows, ""]


def _summary(item: object) -> str:
    return to_markdown((inspect.getdoc(item) or "").partition("\n\n")[0])


if __name__ == "__main__":
    PAGE.write_text(render_values(), "utf-8")
