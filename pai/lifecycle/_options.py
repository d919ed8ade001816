"""The options of installed plugins: checked by the attrs class that the plugin calls ``Options``."""

from __future__ import annotations

import inspect

from pai.errors import Fault, InvalidInput

__all__ = ("options_class", "parse_options")


def options_class(target: object) -> type | None:
    """
    The class of a plugin's options: the attribute ``Options`` of what its entry point names.

    Raises:
        TypeError: There is such an attribute, and it is no class.
    """
    found = getattr(target, "Options", None)
    if found is None or inspect.isclass(found):
        return found
    raise TypeError("Options is no class")


def parse_options(name: str, cls: type | None, given: object) -> tuple[object, list[Fault]]:
    """
    Check the options of the plugin *name*.

    Args:
        name: The plugin.
        cls: The class of its options; ``None``: it takes none.
        given: What was said; ``None``: nothing.

    Returns:
        An instance of the class, or ``None`` if it has none; and what is wrong.

    Raises:
        DefinitionError: The class can't be a schema: that is the plugin's own fault.
    """
    at = f"plugins.{name}"
    if cls is None:
        return None, [Fault(at, "takes no options")] if given else []
    from pai.schema import compile_schema

    try:
        return compile_schema(cls).parse({} if given is None else given, at=at), []
    except InvalidInput as error:
        return None, list(error.faults)
