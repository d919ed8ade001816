"""What providers count, against what we measure: :class:`Calibration`."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pai import ModelRequest, Usage

__all__ = ("Calibration", "model_name")

# Some servers report nothing, or only what was not in their cache: such a count is no measure.
_LEAST = 0.25
_MOVED = 0.1


class Calibration:
    """
    The factor from our sizes to a model's tokens.

    The last request's tokens are known once it is answered; the next request is that one and some
    more. So a size times this factor is the provider's own count, and our measure for the rest only.

    Args:
        factors: By model, as far as known.
    """

    __slots__ = ("_factors", "_told")

    def __init__(self, factors: Mapping[str, float] | None = None) -> None:
        self._factors = dict(factors or {})
        self._told = dict(self._factors)

    def tokens(self, model: str, size: int) -> int:
        """A size, in the model's tokens."""
        return math.ceil(size * self._factors.get(model, 1.0))

    def size(self, model: str, tokens: int) -> int:
        """The largest size that has no more than *tokens*."""
        return math.floor(tokens / self._factors.get(model, 1.0))

    def learn(self, model: str, size: int, usage: Usage | None) -> bool:
        """
        Take in what a provider counted.

        Args:
            model: The model.
            size: Our size of the request.
            usage: What it used.

        Returns:
            Whether the factor has moved so far that it is worth storing.
        """
        if usage is None or size == 0 or usage.input_tokens < size * _LEAST:
            return False
        factor = self._factors[model] = usage.input_tokens / size
        told = self._told.get(model, 1.0)
        return abs(factor - told) > _MOVED * told

    def to_json(self) -> dict[str, float]:
        """As it is stored, from now on."""
        self._told = dict(self._factors)
        return {model: round(factor, 4) for model, factor in self._factors.items()}

    @classmethod
    def from_json(cls, value: object) -> Calibration:
        """What was stored, as far as it can be one."""
        given = value if isinstance(value, Mapping) else {}
        return cls(
            {
                str(model): float(factor)
                for model, factor in given.items()
                if isinstance(factor, (int, float)) and factor >= _LEAST
            }
        )


def model_name(request: ModelRequest) -> str:
    """What the model of a request is called here."""
    model = request.model
    return model if isinstance(model, str) else f"{model.provider}:{model.name}"
