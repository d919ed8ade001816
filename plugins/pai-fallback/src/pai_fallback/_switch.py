"""What happened: one :class:`Switch` from a model to the next."""

from __future__ import annotations

import attrs

from pai import ModelError
from pai.schema import JsonObject
from pai_fallback._switches import REFUSAL

__all__ = ("Switch",)


@attrs.frozen
class Switch:
    """
    A model was given up.

    Args:
        step: The index of the step.
        source: The model that was given up.
        target: The one that is asked next; ``None``: there is none left.
        code: The error's code, or ``refusal``.
        status: The HTTP status, if there was one.
        retry_after: Seconds the provider asked to wait, if it did.
        reset: Parts of the answer had been shown, and are void now (R-37).
    """

    step: int
    source: str
    target: str | None
    code: str
    status: int | None = None
    retry_after: float | None = None
    reset: bool = False

    @classmethod
    def after(
        cls, error: ModelError | None, *, step: int, source: str, target: str | None, reset: bool
    ) -> Switch:
        """
        The switch that an error makes, or a refusal where there is none.

        Of an error, only codes and numbers are told (R-40).
        """
        if error is None:
            return cls(step, source, target, REFUSAL, reset=reset)
        return cls(step, source, target, error.code, error.status, error.retry_after, reset)

    def as_json(self) -> JsonObject:
        """The switch as it stands in events and metadata."""
        return {
            "step": self.step,
            "from": self.source,
            "to": self.target,
            "code": self.code,
            "status": self.status,
            "retryAfter": self.retry_after,
            "reset": self.reset,
        }
