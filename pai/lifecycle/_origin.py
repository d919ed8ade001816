"""Where an installed plugin comes from."""

from __future__ import annotations

import attrs

__all__ = ("Origin",)


@attrs.frozen(eq=False)
class Origin:
    """
    What brought a plugin.

    Args:
        name: Its entry point's name.
        distribution: The distribution's name.
        version: The distribution's version, as far as it says one.
        target: What the entry point names: a module, or an object in one.
    """

    name: str
    distribution: str
    version: str | None
    target: object
