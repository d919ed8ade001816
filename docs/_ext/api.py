"""The reference of public names, rendered from what ``pai`` really exports."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, get_args

import attrs

import pai

from .markup import to_markdown

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# Room -> heading; errors have a page of their own.
ROOMS = {
    "pai.definition": "Define",
    "pai.lifecycle": "Compose",
    "pai.hookspecs": "Compose",
    "pai.contexts": "In hooks",
    "pai.runtime": "Run",
    "pai.loop": "Run",
    "pai.protocol": "Messages, events, settings",
    "pai.ports": "Ports",
}
# An object cannot say what it is itself.
CONSTANTS = {
    "NOT_REPAIRED": "What a function of *repair_tool_input* returns where it can't mend the input.",
    "UNSET": "Nothing was said, where `None` is a value.",
}


class Dots:
    """Stands for a default in a signature."""

    def __repr__(self) -> str:
        return "..."


DOTS = Dots()


def render_api() -> str:
    """Render every public name in Markdown: its signature, and what it is in one sentence."""
    rows: dict[str, list[str]] = {heading: [] for heading in ROOMS.values()}
    for name in pai.__all__:
        if (room := room_of(name)) in ROOMS:
            rows[ROOMS[room]] += rows_of(name, getattr(pai, name))
    lines: list[str] = []
    for heading, below in rows.items():
        lines += [f"## {heading}", "", "| name | is |", "| --- | --- |", *below, ""]
    return "\n".join(lines)


def room_of(name: str) -> str:
    """Return the room that promises a name, as the facade knows it."""
    return str(pai._ROOM_OF[name])  # noqa: SLF001  # the facade says it nowhere else


def rows_of(name: str, value: object) -> Iterator[str]:
    """Yield the row of a name, and for what is only handed out, the rows of its methods."""
    if isinstance(value, types.UnionType):
        members = ", ".join(f"`{member.__name__}`" for member in get_args(value))
        yield f"| `{name}` | one of {members} |"
    elif name in CONSTANTS:
        yield f"| `{name}` | {CONSTANTS[name]} |"
    elif not inspect.isclass(value) or attrs.has(value):
        assert callable(value)
        yield row(name + parameters_of(value), value)
    else:
        yield row(name, value)
        for method_name, method in vars(value).items():
            if inspect.isfunction(method) and not method_name.startswith("_") and method.__doc__:
                yield row(f"{name}.{method_name}{parameters_of(method)}", method)


def row(name: str, value: object) -> str:
    """Render a name with the first sentence of what it says of itself."""
    summary = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return f"| `{name}` | {to_markdown(summary)} |"


def parameters_of(value: Callable[..., object]) -> str:
    """Return the parameters that a caller gives, without their types."""
    signature = inspect.signature(value)
    parameters = [
        parameter.replace(annotation=parameter.empty, default=default_of(parameter))
        for parameter in signature.parameters.values()
        # Other keywords are caught only to be refused by name.
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.name != "self"
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def default_of(parameter: inspect.Parameter) -> object:
    """Return a default that reads well: dots stand for one that is made or long."""
    plain = (bool, int, float, str, tuple, type(None), type(pai.UNSET))
    if parameter.default is parameter.empty or isinstance(parameter.default, plain):
        return parameter.default
    return DOTS


def _insert(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == "reference/api":
        source[0] = source[0].replace("<!-- the public names -->", render_api())


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill the page ``reference/api`` when it is read."""
    app.connect("source-read", _insert)
    return {"parallel_read_safe": True}
