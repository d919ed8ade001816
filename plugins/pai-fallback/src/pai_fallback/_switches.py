"""What makes the chain go on to its next model: :class:`Switches`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from pai import (
    ContextOverflow,
    Fault,
    IncompleteStream,
    MissingCredential,
    ModelError,
    ModelTimeout,
    RateLimited,
)

__all__ = ("DEFAULT_ON", "REFUSAL", "On", "Switches")

On = str | int | type[ModelError] | Callable[[ModelError], bool]
"""One thing that switches; see :func:`pai_fallback.fallback`."""

REFUSAL: Final = "refusal"
"""The model stopped for its content filter. It is no error: the step ends with it."""

DEFAULT_ON: Final = ("model_error", REFUSAL)

_CLASSES: Final[dict[str, type[ModelError]]] = {
    cls.default_code: cls
    for cls in (
        ModelError,
        MissingCredential,
        RateLimited,
        ContextOverflow,
        ModelTimeout,
        IncompleteStream,
    )
}


class Switches:
    """
    What switches.

    Args:
        on: Classes, names of classes by their code, codes, HTTP statuses, predicates; one of them,
            or several.

    Attributes:
        refusals: Whether a refusal does.
        faults: What of *on* is none of these.
    """

    __slots__ = ("_classes", "_codes", "_predicates", "_statuses", "faults", "refusals")

    def __init__(self, on: Iterable[On] | On) -> None:
        self.refusals = False
        self.faults: list[Fault] = []
        self._classes: tuple[type[ModelError], ...] = ()
        self._codes: set[str] = set()
        self._statuses: set[int] = set()
        self._predicates: list[Callable[[ModelError], object]] = []
        items: Iterable[object] = (
            on if isinstance(on, Iterable) and not isinstance(on, str) else (on,)
        )
        for index, item in enumerate(items):
            if not self._take(item):
                self.faults.append(
                    Fault(
                        f"on[{index}]",
                        "expected a ModelError class, a code, an HTTP status, or a function of the"
                        " error",
                    )
                )

    def _take(self, item: object) -> bool:
        if item == REFUSAL:
            self.refusals = True
        elif item == "unavailable":
            self._predicates.append(_unavailable)
        elif isinstance(item, str) and item:
            if item in _CLASSES:
                self._classes += (_CLASSES[item],)
            else:
                self._codes.add(item)
        elif isinstance(item, int) and not isinstance(item, bool):
            self._statuses.add(item)
        elif isinstance(item, type):
            if not issubclass(item, ModelError):
                return False
            self._classes += (item,)
        elif callable(item):
            self._predicates.append(item)
        else:
            return False
        return True

    def takes(self, error: ModelError) -> bool:
        """Whether the chain goes on after *error*."""
        return (
            isinstance(error, self._classes)
            or error.code in self._codes
            or error.status in self._statuses
            or any(predicate(error) for predicate in self._predicates)
        )


def _unavailable(error: ModelError) -> bool:
    """The provider can't be reached, or says that it is broken."""
    return error.code == "connection_error" or (error.status is not None and error.status >= 500)
