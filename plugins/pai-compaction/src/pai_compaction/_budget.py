"""How long a request may be: :class:`Budget`."""

from __future__ import annotations

import attrs

from pai_compaction._checks import Faults, at_least, refuse

__all__ = ("Budget",)


@attrs.frozen
class Budget:
    """
    How long a request may be, in tokens of the model.

    Args:
        limit: Above this it is compacted; ``None``: only when the model says that it is too long.
        target: To this, if that can be done.
    """

    limit: int | None = None
    target: int | None = None

    @classmethod
    def of(cls, max_tokens: object, target: object) -> tuple[Budget, Faults]:
        """A budget, and what is wrong with it; without a target it is half of the limit."""
        faults = Faults()
        if max_tokens is not None:
            faults += at_least("max_tokens", max_tokens, 1)
        if target is not None:
            faults += at_least("target", target, 1)
            if max_tokens is None:
                faults += refuse("target", "needs max_tokens")
        if faults:
            return cls(), faults
        if not isinstance(max_tokens, int):
            return cls(), faults
        if not isinstance(target, int):
            return cls(max_tokens, max(1, max_tokens // 2)), faults
        if target > max_tokens:
            faults += refuse("target", f"is above max_tokens, {max_tokens}")
        return cls(max_tokens, target), faults

    def exceeded_by(self, tokens: int) -> bool:
        """Whether so many are too many."""
        return self.limit is not None and tokens > self.limit

    def harder(self, tokens: int) -> Budget:
        """
        The budget after the model has refused a request of *tokens*.

        How long it may be is not known then; half is the target, and less than three quarters is
        worth a try.
        """
        limit = tokens * 3 // 4 if self.limit is None else min(self.limit, tokens * 3 // 4)
        target = tokens // 2 if self.target is None else min(self.target, tokens // 2)
        return Budget(max(1, limit), max(1, target))

    def room(self, tokens: int) -> int:
        """
        The tokens that a request for a summary may have, where a request of *tokens* is too long.

        Half is left for what the estimate does not know, and for the answer.
        """
        known = tokens if self.limit is None else min(tokens, self.limit)
        return max(_LEAST_ROOM, known // 2)


_LEAST_ROOM = 1_000
