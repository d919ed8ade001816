"""What all contexts within a run share: the run, and what is asked of it most."""

from __future__ import annotations

from typing import Generic, TypeVar

from pai.contexts._read_only import ReadOnly
from pai.contexts._records import Records
from pai.contexts._run import RunContext
from pai.definition import Signal

__all__ = ("OfRun",)

ContextT = TypeVar("ContextT")


class OfRun(ReadOnly, Generic[ContextT]):
    """A context within a run; its behaviour fields are the run's."""

    __slots__ = ("run",)

    run: RunContext[ContextT]

    @property
    def runtime_context(self) -> ContextT:
        """The run's context."""
        return self.run.runtime_context

    @property
    def identity(self) -> object:
        """Who the run is for."""
        return self.run.identity

    @property
    def client_data(self) -> object:
        """What the client sent along."""
        return self.run.client_data

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.run.thread_id

    @property
    def signal(self) -> Signal:
        """Set when the run is to stop."""
        return self.run.signal

    def state_of(self, owner: int) -> dict[str, object]:
        """See :meth:`RunContext.state_of`."""
        return self.run.state_of(owner)

    def records_of(self, plugin: str) -> Records:
        """See :meth:`RunContext.records_of`."""
        return self.run.records_of(plugin)
