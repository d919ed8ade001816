"""From an engine's name to an engine, and the one that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

import anyio

from pai.errors import DefinitionError, Fault
from pai.ports import Engine, EngineHost, Store
from pai.protocol import ThreadKey

__all__ = ("EmbeddedEngine", "open_engine")

POLL = 1.0
"""Seconds between looks for runs that another process queued or left."""

_GROUP = "pai.engines"
"""The entry-point group: ``name = "module:function"``, a function without arguments."""

_OWN = "embedded"


class EmbeddedEngine:
    """
    Wakes this process alone, at once; others see what was queued when they next look.

    It works with every store, on asyncio and on trio.
    """

    claims = True
    transactional = False

    def __init__(self) -> None:
        self._host: EngineHost | None = None

    def check(self, store: Store) -> Sequence[Fault]:
        return ()

    async def open(self, host: EngineHost) -> None:
        self._host = host
        if host.works and host.store.durable:
            host.keep("poll", self._poll)

    def stop(self) -> None:
        """Nothing more is to be done: the host takes no thread any more."""

    async def close(self) -> None:
        """Nothing to let go of."""

    def wake_in(self, tx: object, key: ThreadKey) -> None:
        """Nothing: in one process a wake after the transaction is as good."""

    def wake(self, key: ThreadKey) -> None:
        host = self._host
        if host is not None and host.works:
            host.drain_soon(key)

    async def _poll(self) -> None:
        """Look for runs that another process queued, or left when it died."""
        host = self._host
        assert host is not None
        while True:
            await anyio.sleep(POLL)
            for key in await host.store.waiting():
                host.drain_soon(key)


def open_engine(engine: str | Engine, store: Store) -> Engine:
    """
    The engine that was named, or given, for this store; it is not open yet.

    Args:
        engine: ``"embedded"``, the name of an entry point of ``pai.engines``, or an engine.
        store: The store it is to work with.

    Raises:
        DefinitionError: No engine has this name, it cannot be loaded, or it does not go with the
            store.
    """
    made = _named(engine) if isinstance(engine, str) else engine
    if not isinstance(made, Engine):
        raise _refused(f"expected a name or an engine, got {type(made).__name__}")
    faults = [fault.under("engine") for fault in made.check(store)]
    if faults:
        raise DefinitionError(faults, subject="engine")
    return made


def _named(name: str) -> object:
    if name == _OWN:
        return EmbeddedEngine()
    from stevedore import DriverManager
    from stevedore.exception import MultipleMatches, NoMatches

    reasons: list[str] = []
    try:
        manager: DriverManager[Callable[[], object]] = DriverManager(
            _GROUP,
            name,
            on_load_failure_callback=lambda _, entry, error: reasons.append(
                f"{entry.value} cannot be loaded: {type(error).__name__}: {error}"
            ),
        )
    except NoMatches:
        known = ", ".join(sorted({_OWN, *(point.name for point in entry_points(group=_GROUP))}))
        raise _refused(
            reasons[0] if reasons else f"{name!r} is not available: known are {known}"
        ) from None
    except MultipleMatches:
        message = "several installed packages have an engine of this name: remove all but one"
        raise _refused(message) from None
    return manager.driver()


def _refused(message: str) -> DefinitionError:
    return DefinitionError([Fault("engine", message)], subject="engine")
