"""Taking what comes in: checked, stored, and queued as a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

import attrs

from pai.contexts import AsideItem, Respond
from pai.definition import EMPTY_METADATA, ClientTool, RunOptions, client_tools_to_json
from pai.errors import Fault, InvalidInput, StoreError
from pai.lifecycle import broken_hook, next_answer, wrong_answer
from pai.loop import BoundAgent, asked_aside
from pai.protocol import (
    Accepted,
    DataPart,
    Decision,
    FilePart,
    Message,
    MessagePart,
    Metadata,
    RunQueued,
    RunRecord,
    TextPart,
    ThreadKey,
    ThreadRecord,
    message_view,
    new_id,
    part_to_json,
)
from pai.runtime._limits import Limits, message_faults
from pai.runtime._options import stored_options
from pai.runtime._records import RecordSource
from pai.schema import JsonObject, check_json, digest, parse_stable

if TYPE_CHECKING:
    from pai.runtime._core import Core

__all__ = ("Accepting", "Asked", "Content", "WhenBusy", "WhenPending")

Content = str | TextPart | FilePart | DataPart | Sequence[str | TextPart | FilePart | DataPart]
"""A user's message: text, or parts."""

WhenBusy = Literal["queue", "reject", "interrupt"]
"""What a new run does on a busy thread (R-2)."""

WhenPending = Literal["reject", "supersede"]
"""What it does on a suspended one (R-3a)."""


@attrs.frozen(eq=False)
class Asked:
    """
    What the caller of an operation gave beside its content.

    Args:
        operation: ``send``, ``trigger``, ``regenerate`` or ``resume``.
        run_id: The run's id, if the caller chose one.
        options: Options of this run; a mapping has their JSON form.
        client_data: What the agent's ``client_data`` describes: untrusted.
        client_tools: Tools that the client brings along.
        metadata: For observability only.
        when_busy: See :data:`WhenBusy`.
        when_pending: See :data:`WhenPending`.
        parent_run_id: The run of which this is a subagent's.
        subagent: Where it stands.
    """

    operation: str
    run_id: str | None
    options: RunOptions | Mapping[str, object] | None
    client_data: object
    client_tools: Sequence[ClientTool]
    metadata: Mapping[str, object] | None
    when_busy: WhenBusy = "queue"
    when_pending: WhenPending = "reject"
    parent_run_id: str | None = None
    subagent: JsonObject | None = None

    def faults(self) -> list[Fault]:
        """What is wrong with it, as far as it shows by itself."""
        found = []
        for name, given, words in (
            ("when_busy", self.when_busy, ("queue", "reject", "interrupt")),
            ("when_pending", self.when_pending, ("reject", "supersede")),
        ):
            if given not in words:
                known = ", ".join(map(repr, words))
                found.append(Fault(name, f"{given!r} is not available: one of {known}"))
        if self.run_id is not None and not 0 < len(self.run_id) <= 128:  # said in the text
            found.append(Fault("run_id", "expected 1 to 128 characters"))
        return found


class Accepting:
    """
    The way into one thread.

    Args:
        core: Store and worker.
        agent: The thread's agent.
        key: The thread.
        identity: Who it is for, as it is stored.
        actor: Who acts.
        limits: Limits on what comes in.
    """

    __slots__ = ("actor", "agent", "core", "identity", "key", "limits")

    def __init__(
        self,
        core: Core,
        agent: BoundAgent,
        key: ThreadKey,
        identity: object,
        actor: str | None,
        limits: Limits,
    ) -> None:
        self.core: Final = core
        self.agent: Final = agent
        self.key: Final = key
        self.identity: Final = identity
        self.actor: Final = actor
        self.limits: Final = limits

    async def message(self, content: Content, run_id: str) -> tuple[Message, Respond | None]:
        """
        The user's message, after ``accept_message``, and what that answers in the model's place.

        Raises:
            InvalidInput: The content does not fit.
            PluginError: A hook raised.
        """
        message = Message(
            new_id(),
            "user",
            self._parts(content),
            run_id,
            datetime.now(UTC),
            _initial(self.agent.definition.message_metadata),
        )
        if not self.agent.chains.accept_message:
            return message, None
        return await self._accepted(message)

    def _parts(self, content: Content) -> tuple[MessagePart, ...]:
        items = [content] if isinstance(content, (str, TextPart, FilePart, DataPart)) else content
        if not isinstance(items, Sequence):
            raise InvalidInput(
                [Fault("content", "expected text, or a list of text, files and data")],
                subject="message",
            )
        parts = tuple([TextPart(item) if isinstance(item, str) else item for item in items])
        faults = message_faults(parts, self.limits)
        checked: list[MessagePart] = []
        for index, part in enumerate(parts):
            if not isinstance(part, DataPart):
                checked.append(part)
                continue
            schema = self.agent.definition.ui_data.get(part.name)
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
        source = RecordSource(self.core.store, self.key)
        chain = self.agent.chains.accept_message
        respond: Respond | None = None
        found = await next_answer(chain, 0, message, source)
        while found is not None:
            place, hook, answer = found
            if isinstance(answer, Respond):
                respond = respond or answer
            elif isinstance(answer, Message) and answer.id == message.id:
                if faults := message_faults(answer.parts, self.limits):
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
                for hook in self.agent.chains.transform_aside:
                    item = AsideItem("respond", text)
                    text = str(asked_aside(hook, item, None, _as_text))
                told = TextPart(text)
            parts.append(told)
        return attrs.evolve(respond, parts=tuple(parts))

    def request(self, asked: Asked, respond: Respond | None = None) -> JsonObject:
        """
        What is stored with the run, so that any worker can rebuild its context (R-6).

        Raises:
            InvalidInput: Some of it does not fit; all faults at once.
            UnknownOptionError: An option nobody knows.
        """
        faults = asked.faults()
        request: JsonObject = {}
        if self.identity is not None:
            request["identity"] = self.identity  # type: ignore[assignment]  # dumped when it came in
        if self.actor is not None:
            request["actor"] = self.actor
        client_data = asked.client_data
        if client_data is None and self.agent.definition.client_data is not None:
            client_data = {}
        request |= self._told_along(client_data, asked.client_tools, asked.metadata, faults)
        if faults:
            raise InvalidInput(faults, subject=asked.operation)
        if respond is not None:
            request["respond"] = {
                "parts": [part_to_json(part) for part in respond.parts],
                "outcome": respond.outcome,
                "reason": respond.reason,
            }
        return request

    def changes(
        self,
        options: RunOptions | Mapping[str, object] | None,
        client_data: object,
        client_tools: Sequence[ClientTool] | None,
        metadata: Mapping[str, object] | None,
    ) -> JsonObject:
        """
        What a resume changes of the stored request; what is not given stays.

        Raises:
            InvalidInput: Some of it does not fit; all faults at once.
            UnknownOptionError: An option nobody knows.
        """
        faults: list[Fault] = []
        changes = self._told_along(client_data, client_tools, metadata, faults)
        if faults:
            raise InvalidInput(faults, subject="resume")
        if (taken := stored_options(self.agent, options)) is not None:
            changes["options"] = taken[1]
        return changes

    async def decide(
        self, run_id: str, decisions: Sequence[Decision], request: JsonObject | None = None
    ) -> int | None:
        """
        Store answers that are checked already, and see that their run goes on.

        Args:
            run_id: The run.
            decisions: The answers.
            request: The run's request from now on, if it changes.

        Returns:
            The number of the event before theirs; ``None`` if all were stored before.

        Raises:
            ThreadNotFound: There is no such run.
            AnswerConflict: See :meth:`~pai.ports.Store.answer`.
        """
        answered = await self.core.store.answer(self.key, run_id, decisions, request)
        if answered.batch is None:
            return None
        self.core.answered(self.key, answered.batch)
        return answered.batch.first - 1

    def _told_along(
        self,
        client_data: object,
        client_tools: Sequence[ClientTool] | None,
        metadata: Mapping[str, object] | None,
        faults: list[Fault],
    ) -> JsonObject:
        told: JsonObject = {}
        schema = self.agent.definition.client_data
        if client_data is not None and schema is not None:
            try:
                told["clientData"] = schema.dump(schema.parse(client_data, at="client_data"))
            except InvalidInput as error:
                faults += error.faults
        elif client_data is not None:
            depth = self.limits.client_data_depth
            faults += check_json(client_data, at="client_data", max_depth=depth)
            told["clientData"] = client_data  # type: ignore[assignment]  # checked just above
        if client_tools:
            try:
                own = self.agent.definition.tools
                told["clientTools"] = client_tools_to_json(client_tools, own)  # type: ignore[assignment]  # JSON
            except InvalidInput as error:
                faults += error.faults
        if metadata is not None:
            faults += check_json(dict(metadata), at="metadata")
            told["metadata"] = dict(metadata)  # type: ignore[arg-type]  # checked just above
        return told

    async def accept(
        self,
        asked: Asked,
        run_id: str,
        message: Message | None = None,
        respond: Respond | None = None,
        after: str | None = None,
    ) -> Accepted:
        """
        Queue a run, and claim it at once where that is possible; nobody works on it yet.

        Args:
            asked: What the caller gave.
            run_id: The run's id.
            message: The user's message.
            respond: What ``accept_message`` answered.
            after: The message that a *regenerate* goes on from.

        Raises:
            InvalidInput: Something does not fit; nothing was written.
            StoreError: The runtime is not open.
        """
        core, agent, key = self.core, self.agent, self.key
        if not core.is_open:
            raise StoreError("the runtime is not open: use it in `async with create_pai(...)`")
        definition = agent.definition
        request = self.request(asked, respond)
        parent = asked.parent_run_id
        if asked.subagent is not None:
            request["subagent"] = asked.subagent
        if (taken := stored_options(agent, asked.options)) is not None:
            parent = taken[0].parent_run_id
            request["options"] = taken[1]
        now = message.created_at if message is not None else datetime.now(UTC)
        thread = ThreadRecord(key, agent.key, _initial(definition.thread_metadata), now, now)
        run = RunRecord(
            run_id,
            agent.key,
            definition.version,
            asked.operation,
            request,
            # A fresh id cannot meet an earlier request: only a given one needs the digest.
            _digest(asked.operation, request, message, after) if asked.run_id is not None else "",
            now,
            _initial(definition.run_metadata),
            parent_run_id=parent,
            after=after,
        )
        view = message_view(message) if message is not None else None
        return await core.store.accept(
            thread,
            run,
            message,
            [
                RunQueued(
                    asked.operation,
                    view,
                    run.metadata.shown(),
                    parent,
                    created_at=now,
                    thread_id=key.thread_id,
                    thread_metadata=thread.metadata.shown(),
                    after=after,
                )
            ],
            when_busy="reject" if asked.when_busy == "reject" else "queue",
            when_pending=asked.when_pending,
            claim=core.claim_now(key),
            started=core.started(key),
            leaves=core.side.left,
        )


def _initial(schemas: object) -> Metadata:
    initial = getattr(schemas, "initial", None)
    found: Metadata = initial() if initial is not None else EMPTY_METADATA
    return found


def _as_text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput([Fault("value", "an answer is text")], subject="respond")
    return value


def _digest(operation: str, request: JsonObject, message: Message | None, after: str | None) -> str:
    asked: JsonObject = {"operation": operation, "request": request, "parts": None}
    if message is not None:
        asked["parts"] = [part_to_json(part) for part in message.parts]
    if after is not None:
        asked["after"] = after
    return digest(asked)
