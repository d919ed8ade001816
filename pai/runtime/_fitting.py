"""Which runs can be worked on in this process (A-DEF-7)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pai.errors import StoreError
from pai.loop import BoundAgent
from pai.protocol import RunRecord

__all__ = ("Fitting",)


class Fitting:
    """
    Knows which runs fit the agents of this process, and reports each of the others once.

    Args:
        agents: The agents by key.
        report: Takes errors whole, and where they were.
    """

    def __init__(
        self,
        agents: Mapping[str, BoundAgent],
        report: Callable[[BaseException, Mapping[str, object]], None],
    ) -> None:
        self._agents = agents
        self._report = report
        # Runs that can't be worked on here, and those of them that were reported.
        self._left: dict[str, StoreError] = {}
        self._told: set[str] = set()

    def takes(self, run: RunRecord) -> bool:
        """
        Whether a run can be worked on here; one that can't is left to others (A-DEF-7).

        The store asks this in the transaction, perhaps in a thread of its own.
        """
        agent = self._agents.get(run.agent)
        if agent is None:
            self._left[run.id] = StoreError(
                f"run {run.id!r} stays queued: there is no agent {run.agent!r} here"
            )
            return False
        own, compatible = agent.definition.version, agent.definition.compatible
        if run.version == own or compatible is None:
            return True
        error: Exception | None = None
        try:
            if compatible(run.version, own):
                return True
        except Exception as broken:
            error = broken
        refusal = StoreError(
            f"run {run.id!r} stays queued: it is of version {run.version!r}, and the agent's"
            f" version {own!r} is not compatible"
        )
        refusal.__cause__ = error
        self._left[run.id] = refusal
        return False

    def tell(self) -> None:
        """Report those that were left since it was asked last."""
        if not self._left:
            return
        for run_id in [name for name in self._left if name not in self._told]:
            self._told.add(run_id)
            self._report(self._left[run_id], {"run_id": run_id})
        self._left.clear()
