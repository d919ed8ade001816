"""The demo: a small model that runs here, offline and without a key."""

from __future__ import annotations

from pai.errors import DefinitionError, Fault
from pai.models._demo.driver import DemoDriver

__all__ = ("DemoDriver", "from_name")


def from_name(model: str) -> DemoDriver:
    """The driver for ``demo``."""
    if model:
        fault = Fault("model", f'there is one demo model: write "demo", not "demo:{model}"')
        raise DefinitionError([fault], subject="model")
    return DemoDriver()
