"""A handle on a thread: send, watch, look."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

import attrs

from pai.contexts import AsideItem, Respond
from pai.definition import EMPTY_METADATA, RunOptions
from pai.errors import Fault, InvalidInput, StoreError, ThreadNotFound, UnknownOptionError
from pai.lifecycle import broken_hook, next_answer, wrong_answer
from pai.loop import BoundAgent, asked_aside
from pai.protocol import (
    DataPart,
    Event,
    FilePart,
    Message,
    MessagePart,
    Metadata,
    RunQueued,
    RunRecord,
    TextPart,
    ThreadKey,
    ThreadRecord,
    ThreadState,
    message_view,
    new_id,
    part_to_json,
)
from pai.runtime._event_stream import EventStream
from pai.runtime._limits import Limits, message_faults
from pai.runtime._options import stored_options
from pai.runtime._records import RecordSource
from pai.runtime._run_handle import RunHandle
from pai.runtime._state import thread_state
from pai.schema import JsonObject, check_json, digest, parse_stable

if TYPE_CHECKING:
    from pai.runtime._core import Core

__all__ = ("Content", "ThreadHandle")

Content = str | TextPart | FilePart | DataPart | Sequence[str | TextPart | FilePart | DataPart]
"""A user's message: text, or parts."""

_LATER = {
    "client_tools": "is not available yet: it comes with durable suspension",
}


class ThreadHandle:
    """
    A thread of an agent. The handle touches nothing by itself; the first run makes the thread.

    Attributes:
        id: The thread's id.
    """

    def __init__(
        self,
        core: Core,
        agent: BoundAgent,
        key: ThreadKey,
        identity: object,
        actor: str | None,
        limits: Limits,
    ) -> None:
        self._core: Final = core
        self._agent: Final = agent
        self._key: Final = key
        self._identity: Final = identity
        self._actor: Final = actor
        self._limits: Final = limits
        self.id: Final = key.thread_id

    # ------------------------------------------------------------------ runs

    async def send(
        self,
        content: Content,
        *,
        run_id: str | None = None,
        options: RunOptions | Mapping[str, object] | None = None,
        client_data: object = None,
        metadata: Mapping[str, object] | None = None,
        when_busy: Literal["queue", "reject"] = "queue",
        **unknown: object,
    ) -> RunHandle:
        """
        Send a user's message and start a run, after those that wait already.

        Args:
            content: Text, or parts.
            run_id: The run's id; the same id with the same request is the same run (O-18).
            options: Options of this run; a mapping has their JSON form.
            client_data: What the agent's ``client_data`` describes: untrusted.
            metadata: For observability only: hooks see it, no provider does (O-9).
            when_busy: ``"reject"`` raises if the thread has a run already (R-2).

        Raises:
            InvalidInput: Something does not fit; nothing was written.
            UnknownOptionError: An option nobody knows.
            ThreadNotFound: The thread belongs to another agent.
            ThreadBusy: It is busy, and *when_busy* is ``"reject"``.
            AnswerConflict: The run's id is taken by another request.
        """
        _refuse(unknown)
        parts = self._parts(content)
        run_id, given = _run_id(run_id)
        message = Message(
            new_id(),
            "user",
            parts,
            run_id,
            datetime.now(UTC),
            self._initial(self._agent.definition.message_metadata),
        )
        respond: Respond | None = None
        if self._agent.chains.accept_message:
            message, respond = await self._accepted(message)
        return await self._accept(
            "send", run_id, given, message, respond, options, client_data, metadata, when_busy
        )

    async def trigger(
        self,
        *,
        run_id: str | None = None,
        options: RunOptions | Mapping[str, object] | None = None,
        client_data: object = None,
        metadata: Mapping[str, object] | None = None,
        when_busy: Literal["queue", "reject"] = "queue",
        **unknown: object,
    ) -> RunHandle:
        """Start a run without a user's message; arguments and errors are those of :meth:`send`."""
        _refuse(unknown)
        run_id, given = _run_id(run_id)
        return await self._accept(
            "trigger", run_id, given, None, None, options, client_data, metadata, when_busy
        )

    async def run(self, run_id: str) -> RunHandle:
        """
        A handle on a run of this thread.

        Raises:
            ThreadNotFound: There is no such run here.
        """
        record = await self._core.store.run(self._key, run_id)
        if record is None or record.agent != self._agent.key:
            raise ThreadNotFound(self.id)
        return RunHandle(self._core, self._key, run_id, 1)

    # ------------------------------------------------------------------ look and watch

    async def state(self) -> ThreadState:
        """
        The whole thread as of now; the events after its ``cursor`` are what comes next (R-25).

        Raises:
            ThreadNotFound: Nothing was ever sent here.
        """
        snapshot = await self._core.store.snapshot(self._key, self._agent.key)
        if snapshot is None:
            raise ThreadNotFound(self.id)
        return await thread_state(self._core.store, snapshot)

    def events(self, after: int = 0) -> AsyncIterator[Event]:
        """
        The thread's events; it never ends by itself.

        Args:
            after: Only events numbered above this: a state's ``cursor``, or 0 for all.
        """
        return EventStream(self._core.hub(self._key), after)

    # ------------------------------------------------------------------ inside

    def _parts(self, content: Content) -> tuple[MessagePart, ...]:
        items = [content] if isinstance(content, (str, TextPart, FilePart, DataPart)) else content
        if not isinstance(items, Sequence):
            raise InvalidInput(
                [Fault("content", "expected text, or a list of text, files and data")],
                subject="message",
            )
        parts = tuple([TextPart(item) if isinstance(item, str) else item for item in items])
        faults = message_faults(parts, self._limits)
        checked: list[MessagePart] = []
        for index, part in enumerate(parts):
            if not isinstance(part, DataPart):
                checked.append(part)
                continue
            schema = self._agent.definition.ui_data.get(part.name)
            at = f"content[{index}]"
            if schema is None:
                faults.append(Fault(at, f"{part.name!r} is no data part of this agent"))
                continue
            try:
                checked.append(attrs.evolve(part, value=parse_stable(schema, part.value, at=at)))
            except InvalidInput as error:
                faults += error.faults
        if faults:
            raise InvalidInput(faults, subject="message")
        return tuple(checked)

    async def _accepted(self, message: Message) -> tuple[Message, Respond | None]:
        """What ``accept_message`` makes of the message, and the leftmost answer to it."""
        source = RecordSource(self._core.store, self._key)
        chain = self._agent.chains.accept_message
        respond: Respond | None = None
        found = await next_answer(chain, 0, message, source)
        while found is not None:
            place, hook, answer = found
            if isinstance(answer, Respond):
                respond = respond or answer
            elif isinstance(answer, Message) and answer.id == message.id:
                if faults := message_faults(answer.parts, self._limits):
                    error = InvalidInput(faults, subject="message")
                    raise broken_hook(hook, error) from error
                message = answer
            else:
                raise wrong_answer(hook, answer, "None, the message changed, or Respond")
            found = await next_answer(chain, place, message, source)
        return message, respond and self._told(respond)

    def _told(self, respond: Respond) -> Respond:
        """The answer as it may be written: its texts go through ``transform_aside``."""
        parts = []
        for part in respond.parts:
            told = part
            if isinstance(part, TextPart):
                text = part.text
                for hook in self._agent.chains.transform_aside:
                    item = AsideItem("respond", text)
                    text = str(asked_aside(hook, item, None, _as_text))
                told = TextPart(text)
            parts.append(told)
        return attrs.evolve(respond, parts=tuple(parts))

    def _initial(self, schemas: object) -> Metadata:
        initial = getattr(schemas, "initial", None)
        found: Metadata = initial() if initial is not None else EMPTY_METADATA
        return found

    def _request(
        self, respond: Respond | None, client_data: object, metadata: Mapping[str, object] | None
    ) -> JsonObject:
        """What is stored with the run, so that any worker can rebuild its context (R-6)."""
        faults: list[Fault] = []
        request: JsonObject = {}
        if self._identity is not None:
            request["identity"] = self._identity  # type: ignore[assignment]  # dumped when it came in
        if self._actor is not None:
            request["actor"] = self._actor
        schema = self._agent.definition.client_data
        if schema is not None:
            try:
                request["clientData"] = schema.dump(
                    schema.parse({} if client_data is None else client_data, at="client_data")
                )
            except InvalidInput as error:
                faults += error.faults
        elif client_data is not None:
            depth = self._limits.client_data_depth
            faults += check_json(client_data, at="client_data", max_depth=depth)
            request["clientData"] = client_data  # type: ignore[assignment]  # checked just above
        if metadata is not None:
            faults += check_json(dict(metadata), at="metadata")
            request["metadata"] = dict(metadata)  # type: ignore[arg-type]  # checked just above
        if faults:
            raise InvalidInput(faults, subject="request")
        if respond is not None:
            request["respond"] = {
                "parts": [part_to_json(part) for part in respond.parts],
                "outcome": respond.outcome,
                "reason": respond.reason,
            }
        return request

    async def _accept(
        self,
        operation: str,
        run_id: str,
        given: bool,
        message: Message | None,
        respond: Respond | None,
        options: RunOptions | Mapping[str, object] | None,
        client_data: object,
        metadata: Mapping[str, object] | None,
        when_busy: Literal["queue", "reject"],
    ) -> RunHandle:
        if when_busy not in ("queue", "reject"):
            raise InvalidInput(
                [Fault("when_busy", f"{when_busy!r} is not available: 'queue' or 'reject'")],
                subject=operation,
            )
        core, agent, key = self._core, self._agent, self._key
        if not core.is_open:
            raise StoreError("the runtime is not open: use it in `async with create_pai(...)`")
        definition = agent.definition
        request = self._request(respond, client_data, metadata)
        parent: str | None = None
        if (taken := stored_options(agent, options)) is not None:
            parent = taken[0].parent_run_id
            request["options"] = taken[1]
        now = message.created_at if message is not None else datetime.now(UTC)
        thread = ThreadRecord(key, agent.key, self._initial(definition.thread_metadata), now, now)
        run = RunRecord(
            run_id,
            agent.key,
            definition.version,
            operation,
            request,
            # A fresh id cannot meet an earlier request: only a given one needs the digest.
            _digest(operation, request, message) if given else "",
            now,
            self._initial(definition.run_metadata),
            parent_run_id=parent,
        )
        view = message_view(message) if message is not None else None
        accepted = await core.store.accept(
            thread,
            run,
            message,
            [
                RunQueued(
                    operation,
                    view,
                    run.metadata.shown(),
                    parent,
                    created_at=now,
                    thread_id=key.thread_id,
                    thread_metadata=thread.metadata.shown(),
                )
            ],
            when_busy=when_busy,
            claim=core.claim_now(key),
            started=core.started(key),
        )
        if accepted.batch is None:
            return RunHandle(core, key, accepted.run.id, 1)
        # The handle holds the hub before anything is published into it.
        handle = RunHandle(core, key, run_id, accepted.batch.first)
        core.begin(key, accepted)
        return handle


def _as_text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput([Fault("value", "an answer is text")], subject="respond")
    return value


def _refuse(unknown: Mapping[str, object]) -> None:
    """Options that nobody knows, or that do nothing yet, are refused by name."""
    faults = [
        Fault(name, _LATER.get(name, "is no option here"))
        for name, value in unknown.items()
        if name not in _LATER or value
    ]
    if faults:
        raise UnknownOptionError(faults, subject="send")


def _run_id(run_id: str | None) -> tuple[str, bool]:
    if run_id is None:
        return new_id(), False
    if not 0 < len(run_id) <= 128:  # said in the text
        raise InvalidInput([Fault("run_id", "expected 1 to 128 characters")], subject="request")
    return run_id, True


def _digest(operation: str, request: JsonObject, message: Message | None) -> str:
    parts = [part_to_json(part) for part in message.parts] if message is not None else None
    return digest({"operation": operation, "request": request, "parts": parts})  # type: ignore[dict-item]  # JSON
