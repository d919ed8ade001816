"""SQLite's one writer: a thread that holds the connection and takes what waits together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from pai.stores._sql.caller import Callers, Done, Slot
from pai.stores._sql.statement import Connection

__all__ = ("Held", "Writer")

T = TypeVar("T")

_MOST = 64
"""Jobs in one transaction: the first of them waits for the last."""

_Job = tuple[Slot, Callable[..., Any], tuple[Any, ...]]


class Held(Connection, Protocol):
    """A connection that says whether it is in a transaction."""

    @property
    def in_transaction(self) -> bool: ...

    def close(self) -> None: ...


class Writer:
    """
    Runs plain functions as transactions, one after another, in a thread of its own.

    All that wait when it is free become one transaction, each within a savepoint: a function that
    raises takes back its own writes only, and one flush of the disk serves them all.

    Args:
        connection: Only this thread uses it from now on, and closes it.
        callers: Where results go.
        mapped: Makes a :class:`~pai.errors.StoreError` of a driver's error, and leaves others.
    """

    def __init__(
        self,
        connection: Held,
        callers: Callers,
        mapped: Callable[[BaseException], BaseException],
    ) -> None:
        self._connection = connection
        self._callers = callers
        self._mapped = mapped
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # A daemon: a store that nobody closed must not keep the interpreter from ending.
        self._thread = threading.Thread(target=self._work, name="pai-sqlite-writer", daemon=True)
        self._thread.start()

    async def run(self, fn: Callable[..., T], args: tuple[Any, ...]) -> T:
        """
        Run *fn(connection, *args)* as a transaction.

        If the caller is cancelled meanwhile, it has been done whole, will be, or never begins.
        """
        slot = self._callers.slot()
        self._jobs.put((slot, fn, args))
        value: T = await self._callers.wait(slot)
        return value

    def finish(self) -> None:
        """Wait until all jobs are done and the connection is closed; from any thread, once."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        going = True
        while going:
            job = self._jobs.get()
            jobs: list[_Job] = []
            while True:
                if job is None:
                    going = False
                elif not job[0].cancelled():
                    jobs.append(job)
                if not going or len(jobs) == _MOST:
                    break
                try:
                    job = self._jobs.get_nowait()
                except Empty:
                    break
            if jobs:
                self._callers.post(self._transaction(jobs))
        self._connection.close()

    def _transaction(self, jobs: list[_Job]) -> list[Done]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            done = [self._only(jobs[0])] if len(jobs) == 1 else self._each(jobs)
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")
        except BaseException as error:  # whatever it is, the thread must live on
            self._roll_back()
            return [(slot, None, self._failed(error)) for slot, _, _ in jobs]
        return done

    def _failed(self, error: BaseException) -> BaseException:
        mapped = self._mapped(error)
        # One each: a shared error would gather the tracebacks of all its callers.
        mapped.__cause__ = error
        return mapped

    def _only(self, job: _Job) -> Done:
        slot, fn, args = job
        try:
            return slot, fn(self._connection, *args), None
        except BaseException as error:
            self._roll_back()
            return slot, None, self._mapped(error)

    def _each(self, jobs: list[_Job]) -> list[Done]:
        connection = self._connection
        done: list[Done] = []
        for slot, fn, args in jobs:
            connection.execute("SAVEPOINT job")
            try:
                done.append((slot, fn(connection, *args), None))
            except BaseException as error:
                # On some errors (a full disk) SQLite has rolled all of it back already; then this
                # raises, and all jobs have failed.
                connection.execute("ROLLBACK TO job")
                done.append((slot, None, self._mapped(error)))
            connection.execute("RELEASE job")
        return done

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except Exception:
            # The next BEGIN says what is wrong with the connection.
            return
