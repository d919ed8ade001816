"""What brings a worker to a thread that has a run to take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pai.errors import Fault
    from pai.ports._store import Store
    from pai.protocol import ThreadKey

__all__ = ("Engine", "EngineHost")


class EngineHost(Protocol):
    """What an engine is given: the runtime whose workers it wakes."""

    @property
    def store(self) -> Store:
        """The truth; it is open."""

    @property
    def works(self) -> bool:
        """Whether runs are worked on in this process, or it only accepts them."""

    @property
    def lease(self) -> float:
        """Seconds a worker may be silent before others take its run (R-4)."""

    @property
    def max_runs(self) -> int | None:
        """Runs worked on at once in this process; ``None``: no limit."""

    async def drain(self, key: ThreadKey) -> None:
        """
        Work on the thread's runs until none is left to take.

        It raises nothing of a run. Where the thread is worked on here already, that work is told to
        look again, and this returns at once.
        """

    def drain_soon(self, key: ThreadKey) -> None:
        """Do so in a task of the runtime."""

    def spawn(self, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task that lives as long as the runtime."""

    def keep(self, name: str, task: Callable[[], Awaitable[None]]) -> None:
        """Start a task that shall never end: a failure is reported, and it starts again."""


@runtime_checkable
class Engine(Protocol):
    """
    What brings a worker to a thread: "wake thread T". The store holds the truth.

    Guarantees an engine gives:

    * A wake carries ids only: what a run needs, its worker reads from the store (R-5).
    * A wake in a transaction comes true with it: none before its commit, none if it rolls back.
    * Wakes are idempotent: a second one does no harm.
    * A lost one does no harm either: sooner or later each thread of the store's ``waiting()`` is
      worked on, as long as one process works. So runs that a dead worker held go on, too.
    * It works on a thread by the host's ``drain`` alone, which claims by lease and fence.
    * After ``stop`` no thread is begun any more.
    """

    @property
    def claims(self) -> bool:
        """Whether a process that works may claim a run in the transaction that accepts it."""

    @property
    def transactional(self) -> bool:
        """Whether it writes in the store's transactions; ``wake_in`` is called only then."""

    def check(self, store: Store) -> Sequence[Fault]:
        """What keeps it from working with this store."""

    async def open(self, host: EngineHost) -> None:
        """
        Get ready, and begin to bring threads if the host works.

        Raises:
            StoreError: It can't be reached.
            DefinitionError: It does not run on this event loop.
        """

    def stop(self) -> None:
        """Begin no thread any more; those under way end by themselves."""

    async def close(self) -> None:
        """Let go of everything, when no thread is worked on any more."""

    def wake_in(self, tx: object, key: ThreadKey) -> None:
        """Wake the thread's worker when this transaction commits; *tx* is its connection."""

    def wake(self, key: ThreadKey) -> None:
        """Wake the thread's worker: there is a run to take already."""
