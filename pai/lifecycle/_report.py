"""What became of a plugin, and the words for one that is broken."""

from __future__ import annotations

import traceback
from typing import Literal

import attrs

from pai.errors import DefinitionError, InvalidInput, PluginError
from pai.lifecycle._installed import Installed

__all__ = ("PluginReport", "broken", "cause_of", "refused")


@attrs.frozen
class PluginReport:
    """
    What became of an installed plugin when a runtime was created (R-36).

    Attributes:
        name: Its entry point's name.
        distribution: The distribution that brings it.
        version: The distribution's version, as far as it says one.
        state: ``loaded``; ``aside``: it has nothing to do here; ``broken``: *error* says why.
        position: On which side of the agents' own plugins it stands; ``None`` if on none.
        error: Names plugin, distribution and cause; its ``__cause__`` is what was raised.
    """

    name: str
    distribution: str
    version: str | None
    state: Literal["loaded", "aside", "broken"]
    position: Literal["first", "last"] | None = None
    error: PluginError | None = attrs.field(default=None, eq=False)


def broken(plugin: Installed, cause: BaseException) -> PluginReport:
    """The report on a plugin that raised when it was loaded."""
    report = refused(plugin, f"cannot be loaded: {cause_of(cause)}")
    assert report.error is not None
    report.error.__cause__ = cause
    return report


def refused(plugin: Installed, why: str) -> PluginReport:
    """The report on a plugin that is left out."""
    version = f" {plugin.version}" if plugin.version else ""
    error = PluginError(
        f"plugin {plugin.name!r} of {plugin.distribution}{version} {why}",
        plugin=plugin.name,
        distribution=plugin.distribution,
        phase="load",
    )
    return PluginReport(plugin.name, plugin.distribution, plugin.version, "broken", None, error)


def cause_of(error: BaseException) -> str:
    """
    What was raised, and where.

    The text of an error is repeated only where it can hold no secret (R-40): those about imports
    and syntax speak of names in code, ours of what was declared.
    """
    name = type(error).__name__
    if isinstance(error, (ImportError, SyntaxError, DefinitionError, InvalidInput)):
        return f"{name}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    return f"{name} in {frames[-1].filename}, line {frames[-1].lineno}" if frames else name
