"""The engine: jobs that say which thread has a run to take, and workers that drain threads."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Sequence

import anyio
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Status
from procrastinate.worker import Worker

from pai.errors import DefinitionError, Fault, StoreError
from pai.ports import EngineHost, Store, TransactionalStore
from pai.protocol import ThreadKey
from pai_procrastinate._wakes import TASK, Wakes, make_tables

__all__ = ("ProcrastinateEngine",)

_MANY = 100
"""Threads worked on at once by a process that sets no limit."""

_HEARTBEAT = 15.0
"""Seconds of silence after which a worker of a runtime without leases counts as dead."""


class ProcrastinateEngine:
    """
    Wakes workers on many machines, by jobs in the same PostgreSQL database as the threads.

    ``create_pai(engine="procrastinate")`` makes one with these defaults. A process that works
    runs on asyncio; one that only accepts runs (``work=False``) may be on trio.

    Args:
        queue: procrastinate's name for the queue; the same in all processes.
        poll: Seconds between looks for jobs, dead workers and threads whose wake was lost. A job
            that is written is told of at once.
    """

    claims = False
    transactional = True

    def __init__(self, *, queue: str = "pai", poll: float = 1.0) -> None:
        if not poll > 0:
            fault = Fault("poll", "expected a number of seconds above 0")
            raise DefinitionError([fault], subject="engine")
        self._queue = queue
        self._poll = poll
        self._wakes = Wakes(queue)
        self._host: EngineHost | None = None
        self._store: TransactionalStore | None = None
        self._app: App | None = None
        self._worker: Worker | None = None
        self._stopped = False
        self._idle: anyio.Event | None = None

    def check(self, store: Store) -> Sequence[Fault]:
        """It needs PostgreSQL: its jobs lie beside the threads, in one database."""
        if isinstance(store, TransactionalStore) and store.dialect == "postgresql":
            return ()
        message = (
            "procrastinate needs PostgreSQL, store='postgresql://…': with SQLite or memory take"
            " engine='embedded'"
        )
        return (Fault("", message),)

    async def open(self, host: EngineHost) -> None:
        store = host.store
        assert isinstance(store, TransactionalStore)
        if host.works and not _on_asyncio():
            message = (
                "procrastinate works on asyncio alone: run this process on asyncio, or with"
                " work=False, which only accepts runs"
            )
            raise DefinitionError([Fault("engine", message)], subject="create_pai")
        await store.tx(make_tables)
        self._host, self._store, self._stopped = host, store, False
        if not host.works:
            return
        app = App(connector=PsycopgConnector(conninfo=store.url, min_size=1, max_size=4))
        app.task(name=TASK, queue=self._queue)(self._drain)
        try:
            await app.open_async()
        except ConnectorException as error:
            raise StoreError(f"procrastinate cannot reach the database: {error}") from error
        self._app = app
        host.keep("procrastinate", self._work)
        host.keep("sweep", self._sweep)

    def stop(self) -> None:
        self._stopped = True
        if self._worker is not None:
            self._worker.stop()  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        if self._idle is not None:
            await self._idle.wait()
        if self._app is not None:
            await self._app.close_async()
            self._app = None

    def wake_in(self, tx: object, key: ThreadKey) -> None:
        self._wakes.put(tx, key)

    def wake(self, key: ThreadKey) -> None:
        host, store = self._host, self._store
        if host is None or store is None:
            return

        async def woken() -> None:
            # A wake that is lost is made up for by the sweep.
            with contextlib.suppress(StoreError):
                await store.tx(self._wakes.put, key)

        host.spawn(woken)

    # ------------------------------------------------------------------ work

    async def _drain(self, partition: str, thread_id: str) -> None:
        assert self._host is not None
        await self._host.drain(ThreadKey(partition, thread_id))

    async def _work(self) -> None:
        """Take jobs until the runtime closes."""
        assert self._host is not None
        assert self._app is not None
        if self._stopped:
            await anyio.sleep_forever()
        silence = self._silence()
        self._worker = Worker(
            self._app,
            queues=[self._queue],
            name="pai",
            concurrency=self._host.max_runs or _MANY,
            fetch_job_polling_interval=self._poll,
            # A job says nothing that the store does not: there is no reason to keep it.
            delete_jobs="always",
            # The runtime ends by itself, and the script's worker by its own handler.
            install_signal_handlers=False,
            update_heartbeat_interval=silence / 5,
            stalled_worker_timeout=silence,
        )
        self._idle = anyio.Event()
        try:
            # It ends when it is stopped, and not before the threads it works on have ended.
            with anyio.CancelScope(shield=True):
                await self._worker.run()  # type: ignore[no-untyped-call]
        finally:
            self._worker = None
            self._idle.set()
        if not self._stopped:
            raise StoreError(
                "procrastinate's worker ended, as it lost the database: it begins anew"
            )

    async def _sweep(self) -> None:
        """Bury the jobs of dead workers, whose locks keep others out, and wake who waits."""
        assert self._host is not None
        assert self._store is not None
        assert self._app is not None
        jobs = self._app.job_manager
        while True:
            await anyio.sleep(self._poll)
            for job in await jobs.get_stalled_jobs(
                queue=self._queue, task_name=TASK, seconds_since_heartbeat=self._silence()
            ):
                # Another process may have done it.
                with contextlib.suppress(ConnectorException):
                    await jobs.finish_job(job, Status.FAILED, delete_job=True)
            keys = await self._host.store.waiting()
            if keys:
                await self._store.tx(self._wakes.put_all, keys)

    def _silence(self) -> float:
        """Seconds of silence after which a worker counts as dead."""
        assert self._host is not None
        return self._host.lease if math.isfinite(self._host.lease) else _HEARTBEAT


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
