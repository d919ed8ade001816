"""Which models were given up: in a step by all fallbacks around it, in an episode by one."""

from __future__ import annotations

import attrs

from pai import ModelDriver, ModelRequest

__all__ = ("GivenUp", "Place")

CAPABILITY = "pai_fallback"
"""Where the request carries it, so that a fallback inside another one knows of it."""


class GivenUp:
    """
    The models that failed in this step, by identity.

    Where fallbacks stand inside each other, the inner one's chain would be tried for each model of
    the outer one's. They share this, and so no model is asked twice.
    """

    __slots__ = ("_drivers",)

    def __init__(self) -> None:
        # The drivers themselves are kept, so that none of the ids is used again.
        self._drivers: dict[int, object] = {}

    @classmethod
    def shared(cls, request: ModelRequest) -> tuple[GivenUp, ModelRequest]:
        """
        What an outer fallback put into the request; else a new one, and the request with it.

        Nobody asks a model of the chain again: the chain goes on to the next one.
        """
        found = request.capabilities.get(CAPABILITY)
        if isinstance(found, cls):
            return found, request
        made = cls()
        capabilities = {**request.capabilities, CAPABILITY: made}
        return made, attrs.evolve(request, capabilities=capabilities, retry=None)

    def add(self, driver: ModelDriver) -> None:
        """Give it up."""
        self._drivers[id(driver)] = driver

    def __contains__(self, driver: ModelDriver) -> bool:
        return id(driver) in self._drivers


class Place:
    """
    Where the chain stands: for each first model the place that answered last.

    It lives in the plugin's ``state``, so for one episode (R-34).
    """

    __slots__ = ("_at",)

    def __init__(self) -> None:
        self._at: dict[int, tuple[ModelDriver, int]] = {}

    @classmethod
    def of(cls, state: dict[str, object]) -> Place:
        """The one in *state*."""
        found = state.get("place")
        if not isinstance(found, cls):
            found = state["place"] = cls()
        return found

    def get(self, first: ModelDriver) -> int:
        """0 for the step's own model, else the number of the target."""
        return self._at.get(id(first), (first, 0))[1]

    def put(self, first: ModelDriver, at: int) -> None:
        """Begin there from the next step on."""
        self._at[id(first)] = (first, at)
