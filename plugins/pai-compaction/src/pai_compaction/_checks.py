"""Checks of options: :class:`Faults`, all told at once."""

from __future__ import annotations

from collections.abc import Collection

from pai import DefinitionError, Fault

__all__ = ("Faults", "at_least", "instance", "names", "refuse", "text")


class Faults(list[Fault]):
    """What is wrong with options."""

    def raise_for(self, subject: str) -> None:
        """
        Tell them, if there are any.

        Raises:
            DefinitionError: There are.
        """
        if self:
            raise DefinitionError(self, subject=subject)


def refuse(path: str, message: str) -> Faults:
    """One fault."""
    return Faults([Fault(path, message)])


def at_least(path: str, value: object, least: int) -> Faults:
    """A fault, unless *value* is a whole number from *least*."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return Faults()
    return refuse(path, f"expected a whole number from {least}")


def text(path: str, value: object) -> Faults:
    """A fault, unless *value* is a text with something in it."""
    return Faults() if isinstance(value, str) and value else refuse(path, "expected a text")


def names(path: str, value: object) -> Faults:
    """A fault, unless *value* is a collection of names."""
    if (
        isinstance(value, Collection)
        and not isinstance(value, str)
        and all(isinstance(name, str) for name in value)
    ):
        return Faults()
    return refuse(path, "expected a collection of names")


def instance(path: str, value: object, cls: type) -> Faults:
    """A fault, unless *value* is ``None`` or one of *cls*."""
    if value is None or isinstance(value, cls):
        return Faults()
    return refuse(path, f"expected {cls.__name__}")
