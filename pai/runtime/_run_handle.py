"""A handle on a run: watch it, wait for it, answer it, cancel it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar, overload

import attrs

from pai.definition import ClientTool, Output, RunOptions, StoredMetadata
from pai.errors import Fault, StoreError, ThreadNotFound, UnknownOptionError
from pai.protocol import (
    UNEDITED,
    Approve,
    Event,
    MessageView,
    RunFinished,
    RunSuspended,
    ThreadChange,
    ToolCallPart,
    message_view,
)
from pai.runtime._answers import GivenAnswer, decisions
from pai.runtime._edit import change_of
from pai.runtime._event_stream import EventStream, TextStream
from pai.runtime._hub import Hub, Watcher
from pai.runtime._output import Expected, Grown, JsonOutput, TypedOutput, expected_of, loaded_output
from pai.runtime._result import RunResult
from pai.schema import UNSET, JsonObject, JsonValue, compile_schema

if TYPE_CHECKING:
    from pai.runtime._accepting import Accepting

__all__ = ("RunHandle",)

T = TypeVar("T")

_SETTLED = frozenset({"completed", "failed", "cancelled", "blocked"})


class RunHandle:
    """
    A run of a thread. It goes on whether anybody watches or not (R-8).

    Attributes:
        id: The run's id.
        thread_id: Its thread.
    """

    def __init__(self, accepting: Accepting, run_id: str, first: int, hub: Hub) -> None:
        self._accepting: Final = accepting
        self._core: Final = accepting.core
        self._key: Final = accepting.key
        self._before: Final = first - 1
        # Where the text of its present episode begins, for a handle that has resumed it.
        self._resumed = self._before
        # What this process hands on from here is kept for this handle.
        self._hub: Final = hub
        self.id: Final = run_id
        self.thread_id: Final = accepting.key.thread_id

    def events(self, after: int | None = None) -> AsyncIterator[Event]:
        """
        The run's events, from its first; it ends when the run has settled, or waits for answers.

        A suspension that was answered since does not end it. It raises
        :class:`~pai.errors.ThreadNotFound` when the thread is deleted, as do :meth:`text` and
        :meth:`result`.

        Args:
            after: Only events numbered above this; 0 is the beginning.
        """
        start = self._before if after is None else after
        return EventStream(self._hub, start, self.id, self._rests)

    async def _rests(self, episode: int | None) -> bool:
        """Whether the run has settled, or waits since the suspension that ended *episode*."""
        if episode is None and self._core.works_on(self._key, self.id):
            return False
        record = await self._core.store.run(self._key, self.id)
        if record is None:
            raise ThreadNotFound(self.thread_id)
        if record.status in _SETTLED:
            # One that has settled since is told of by its last event.
            return episode is None
        return record.status == "suspended" and episode in (None, record.episode)

    def text(self) -> AsyncIterator[str]:
        """
        The deltas of the run's text, as they come, until it settles or waits for answers.

        From a handle that has resumed the run, only what comes since.
        """
        return TextStream(self._hub, self._resumed, self.id, self._rests)

    @overload
    def partial_output(self, /) -> AsyncIterator[JsonValue]: ...

    @overload
    def partial_output(self, type_: type[T], /) -> AsyncIterator[T]: ...

    @overload
    def partial_output(self, type_: object, /) -> AsyncIterator[object]: ...

    def partial_output(self, type_: object = UNSET, /) -> AsyncIterator[object]:
        """
        The structured output as it is written: each value has more of it (O-11).

        Texts and lists grow at their ends, objects by their keys; the last value is the whole
        output, checked. Where a step is made anew, or an answer did not fit, it begins anew.

        Args:
            type_: A class, or any type that schemas are made from, for objects of it; without one,
                it comes as JSON. All but the last are made without ``__init__``: of an attrs class,
                fields that are not written yet are ``UNSET``, and no default, converter or
                validator runs. What of a union can't be told yet is left out. The last raises
                :class:`~pai.errors.InvalidInput` where the output is no *type_*.

        Raises:
            DefinitionError: No schema can be made from *type_*.
        """
        core, key, id_ = self._core, self._key, self.id
        if type_ is UNSET:
            return JsonOutput(self._grown(lambda: expected_of(core, key, id_)))
        schema = compile_schema(type_)

        async def find() -> Expected:
            # It is read as what it is to become, whoever asked for it.
            return attrs.evolve(await expected_of(core, key, id_), output=Output(schema))

        return TypedOutput(self._grown(find), schema)

    def _grown(self, find: Callable[[], Awaitable[Expected]]) -> Grown:
        return Grown(self._hub, self._resumed, self.id, self._rests, find)

    async def result(self) -> RunResult:
        """
        Wait for the end, or for the next suspension.

        It never raises for a run that failed: see ``raise_for_status()``.

        Raises:
            ThreadNotFound: The thread was deleted.
        """
        watcher = Watcher(self._hub, self._before)
        while True:
            for batch in await watcher.next():
                if batch.run_id != self.id:
                    continue
                for event in batch.events[-2:]:
                    if type(event) is RunFinished:
                        return await self._ended(event)
                    if type(event) is RunSuspended and await self._rests(event.episode):
                        return await self._waiting(event)

    async def _ended(self, end: RunFinished) -> RunResult:
        message = await self._message()
        return RunResult(
            self.id, end.status, end.outcome, end.reason, end.stop_reason,
            await loaded_output(self._core, self._key, self.id, message), message, end.usage, (),
            end.error,
        )  # fmt: skip

    async def _waiting(self, event: RunSuspended) -> RunResult:
        calls = await self._core.store.calls(self._key, self.id)
        pending = tuple([call.pending(self.id) for call in calls if call.status == "waiting"])
        return RunResult(
            self.id, "suspended", None, None, None, None, await self._message(), event.usage,
            pending, None,
        )  # fmt: skip

    async def _message(self) -> MessageView | None:
        for item in reversed(await self._core.store.run_messages(self._key, self.id)):
            if item.role == "assistant":
                stored = StoredMetadata(self._accepting.agent.definition.message_metadata)
                return message_view(attrs.evolve(item, metadata=stored.read(item.metadata).bags))
        return None

    async def resume(
        self,
        answers: Sequence[GivenAnswer],
        *,
        options: RunOptions | Mapping[str, object] | None = None,
        client_data: object = None,
        client_tools: Sequence[ClientTool] | None = None,
        metadata: Mapping[str, object] | None = None,
        **unknown: object,
    ) -> None:
        """
        Answer pending calls: all of these answers are stored, or none (O-16).

        Some of the pending calls may be answered, and the others later (R-21): the run goes on with
        what it can, and waits again for the rest. Giving the same answers again is safe.

        Args:
            answers: ``Approve``, ``Deny``, ``Provide``, ``Cancel``, ``Answer``.
            options: Options of the run from now on; like the others, what is not given stays.
            client_data: What the agent's ``client_data`` describes.
            client_tools: Tools that the client brings along.
            metadata: For observability only.

        Raises:
            InvalidInput: A value does not fit what it answers; nothing was written.
            AnswerConflict: A call is not pending, has expired, is of another kind or input, or was
                answered otherwise (R-20).
            ThreadNotFound: The run is gone.
        """
        if unknown:
            faults = [Fault(name, "is no option here") for name in unknown]
            raise UnknownOptionError(faults, subject="resume")
        core, key, accepting = self._core, self._key, self._accepting
        if not core.is_open:
            raise StoreError("the runtime is not open: use it in `async with create_pai(...)`")
        record = await core.store.run(key, self.id)
        if record is None:
            raise ThreadNotFound(self.thread_id)
        rows = await core.store.calls(key, self.id)
        if any(isinstance(answer, Approve) and answer.input is not UNEDITED for answer in answers):
            # A tool of ours says nothing about a provider's that has its name.
            theirs = await self._of_provider()
            rows = [row for row in rows if row.call_id not in theirs]
        found = decisions(accepting.agent, rows, answers, accepting.actor)
        changes = accepting.changes(options, client_data, client_tools, metadata)
        request: JsonObject | None = {**record.request, **changes} if changes else None
        self._resumed = await accepting.decide(self.id, found, request) or self._resumed

    async def _of_provider(self) -> set[str]:
        """The ids of the run's calls that the provider runs."""
        return {
            part.call_id
            for message in await self._core.store.run_messages(self._key, self.id)
            for part in message.parts
            if isinstance(part, ToolCallPart) and part.provider_executed
        }

    async def update_metadata(
        self,
        private: Mapping[str, object] | None = None,
        public: Mapping[str, object] | None = None,
        replace: bool = False,
    ) -> None:
        """
        Set keys of the run's metadata, whether it waits, is under way or has ended.

        They are merged into what is stored at that moment, checked whole, both bags or neither
        (A-META-5).

        Args:
            private: Keys to set in the private bag.
            public: Keys to set in the public bag.
            replace: A bag that is given becomes just this, in place of the old one.

        Raises:
            InvalidInput: The result does not fit its schema; nothing was written.
            ThreadNotFound: The thread was deleted.
        """
        agent = self._accepting.agent
        schemas = agent.definition.run_metadata
        merge = change_of(schemas, private, public, replace=replace, at="run_metadata")
        change = ThreadChange(run_id=self.id, run_metadata=merge)
        await self._core.update(self._key, agent.key, change)

    async def cancel(self, reason: str = "cancelled") -> None:
        """
        Cancel the run, from any process; one that has ended stays as it is (R-8).

        Args:
            reason: Kept on the run (O-1).
        """
        await self._core.cancel(self._key, self.id, reason)
