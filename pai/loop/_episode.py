"""An episode: what the loop keeps of a run while it works on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import anyio
import anyio.lowlevel
import attrs

from pai.contexts import RunContext, RunPatch, renew
from pai.definition import (
    EMPTY_METADATA,
    AgentToolConfig,
    LoopOptions,
    MetadataPatch,
    ModelSelection,
    Output,
    RunOptions,
    Signal,
)
from pai.errors import InvalidInput, PluginError
from pai.loop._agent import BoundAgent
from pai.loop._child_port import Children
from pai.loop._draft import Draft
from pai.loop._end_jobs import end_jobs
from pai.loop._journal import Journal
from pai.ports import ModelDriver, ModelProfile
from pai.protocol import (
    CallRecord,
    Changed,
    Claimed,
    Commit,
    Committed,
    FinishReason,
    Merge,
    Message,
    Metadata,
    ToolSpec,
    Transport,
    Usage,
)
from pai.schema import JsonValue

__all__ = ("Episode", "Report")

Report = Callable[[BaseException, Mapping[str, object]], None]
"""Takes an error whole, with what is known of where it happened (A-RUN-3)."""


class Episode:
    """
    One continuation of a run, from claim to settle.

    Attributes:
        discovered: How many messages were looked at for lazy tools, and those found (O-6).
        draft: The assistant message of the present step.
        finish_reason: How the last step finished.
        held: What the next commit takes along.
        broken: A hook failed in code that may have hidden it.
        loop: What steers the loop.
        output: The structured output that the present step may make (O-11).
        told_output: The model was told of it.
        closing: The output that is asked for in a call of its own, now that the tools are done.
        driver: The driver last asked, and its profile.
        decisions: What was decided on the run's calls, for a driver that wants to know (O-3).
        offered: What the thread's calls have offered so far, for such a driver (O-10).
        stopped: Why the loop was stopped, where an output is still to come.
        message_patch: What ``prepare_run`` says of the metadata of each message.
        overridden: Options of the step that the provider's own win over (O-25).
        open_calls: Calls that are committed and have not settled.
        options: The options of the call, if it had some.
        suspended: The run waits: its last commit was made.
        expires_at: When the first of the calls that it waits for expires.
        questions: Questions of hooks, and pending calls of subagents, by id.
        rooms: Room for runs of subagents at once, by name.
        tools: All tools by name: the agent's, and those the client brought along.
    """

    __slots__ = (
        "_client_specs",
        "_history",
        "_rewriting",
        "_specs",
        "agent",
        "broken",
        "call_ids",
        "children",
        "claimed",
        "closing",
        "context",
        "decisions",
        "discovered",
        "draft",
        "driver",
        "expires_at",
        "finish_reason",
        "held",
        "history_length",
        "journal",
        "loop",
        "loop_thread",
        "message_patch",
        "offered",
        "open_calls",
        "options",
        "output",
        "overridden",
        "patch",
        "questions",
        "report",
        "resolve",
        "rooms",
        "selection",
        "signal",
        "stopped",
        "suspended",
        "told_output",
        "tool_limiter",
        "tools",
        "transport",
        "usage",
    )  # fmt: skip

    context: RunContext[Any]

    def __init__(
        self,
        agent: BoundAgent,
        claimed: Claimed,
        journal: Journal,
        report: Report,
        resolve: Callable[[ModelDriver | str], ModelDriver],
        tool_limiter: Callable[[], anyio.CapacityLimiter],
        children: Children,
    ) -> None:
        self.agent: Final = agent
        self.claimed: Final = claimed
        self.journal: Final = journal
        self.report: Final = report
        self.resolve: Final = resolve
        self.tool_limiter: Final = tool_limiter
        self.children: Final = children
        self.rooms: dict[str, anyio.Semaphore] = {}
        self.signal: Final = Signal()
        self.loop_thread: Final = threading.get_ident()
        self._history: list[Message] = []
        self._rewriting: anyio.Lock | None = None
        self.history_length = 0
        self.patch: RunPatch | None = None
        self.selection: ModelSelection | None = None
        self.transport: Transport | None = None
        self.output: Output | None = None
        self.told_output = False
        self.closing: Output | None = None
        self.stopped: str | None = None
        self.driver: tuple[ModelDriver, ModelProfile] | None = None
        self.decisions: dict[str, JsonValue] | None = None
        self.offered: JsonValue = None
        self.usage = Usage()
        self.discovered: tuple[int, set[str]] = (0, set())
        self.finish_reason: FinishReason = "other"
        self.loop: LoopOptions[Any] = agent.definition.loop
        self.options: RunOptions | None = None
        self.overridden: list[str] | None = None
        self.call_ids: set[str] = set()
        self.open_calls: dict[str, CallRecord] = {}
        self.suspended = False
        self.expires_at: datetime | None = None
        self.questions: dict[str, CallRecord] = {}
        self.tools: Mapping[str, AgentToolConfig[Any]] = agent.definition.tools
        self._client_specs: tuple[ToolSpec, ...] = ()
        self._specs: dict[frozenset[str], tuple[ToolSpec, ...]] = {}
        self.held = Commit()
        self.broken: PluginError | None = None
        self.message_patch: MetadataPatch | None = None
        self.draft = Draft(claimed.run.id, 0, EMPTY_METADATA)

    def profile_of(self, driver: ModelDriver) -> ModelProfile:
        """The profile of the driver that is asked now."""
        if self.driver is None or self.driver[0] is not driver:
            # Asked once a driver: working a profile out may cost as much as a step.
            self.driver = (driver, driver.profile)
        return self.driver[1]

    @property
    def messages(self) -> Sequence[Message]:
        """The thread's messages up to now, oldest first, repaired (R-15)."""
        return self._history

    def read_history(self, messages: list[Message]) -> None:
        """Begin with these messages."""
        self._history = messages
        self.history_length = len(messages)

    def bring_tools(self, tools: Mapping[str, AgentToolConfig[Any]]) -> None:
        """Take in the tools that the client brought along (A-TOOL-8)."""
        self.tools = {**self.agent.definition.tools, **tools}
        self._client_specs = tuple([config.tool.spec(name) for name, config in tools.items()])

    def specs(self, names: Collection[str]) -> tuple[ToolSpec, ...]:
        """The specs of these tools: one tuple for each set, so that drivers can keep its form."""
        own = self.agent.specs(frozenset(self.agent.definition.tools).intersection(names))
        brought = self.brought(names)
        if not brought:
            return own
        key = frozenset(names)
        if key not in self._specs:
            self._specs[key] = own + brought
        return self._specs[key]

    def brought(self, names: Collection[str]) -> tuple[ToolSpec, ...]:
        """The specs of those of these tools that the client brought along."""
        return tuple([spec for spec in self._client_specs if spec.name in names])

    def reopen(self) -> None:
        """Take the message of the draft, which a former worker has committed, out of the history."""
        run_id, last = self.claimed.run.id, self.draft.id
        history = [message for message in self._history if message.id != last]
        own = [m for m in history if m.run_id == run_id and m.role == "assistant"]
        self._history = history
        # What the run itself has said stands behind the history that it began with.
        self.history_length = len(history) - len(own)

    def end_step(self) -> None:
        """Put the step's message into the history."""
        message = self.draft.message
        assert message is not None
        self._history.append(message)

    @property
    def said(self) -> int:
        """Assistant messages of this run that are committed."""
        run_id, last = self.claimed.run.id, self.draft.message
        count = 0 if last is None else 1
        for message in reversed(self._history):
            if message.run_id != run_id:
                break
            if message.role == "assistant" and (last is None or message.id != last.id):
                count += 1
        return count

    async def commit(self, change: Commit) -> Committed:
        """
        Write a change, and with it what is held.

        Raises:
            LeaseLost: The run is not ours any more.
            InvalidInput: Metadata that is held does not fit what others wrote meanwhile; nothing is
                written, and it is held no more.
        """
        held = self.held
        own = change.events
        merges = bool(held.run_metadata or held.thread_metadata or held.message_metadata)
        if held.events or merges:
            self.held = Commit()
            change.events = [*held.events, *own]
            change.run_metadata = held.run_metadata
            change.thread_metadata = held.thread_metadata
            change.message_metadata = held.message_metadata
        if change.end is not None and self.agent.leaves_jobs:
            # A message that this very commit brings is not in the history yet.
            count = len(self._history) + (self.draft.message is None)
            change.jobs = end_jobs(
                self.agent, self.claimed, count, change.end, self.journal.job_lease
            )
        assembly = self.draft.assembly
        if assembly is not None and assembly.labels is not None:
            change.labelled = assembly.labels.written and change.message is not None
        jobs = change.jobs
        try:
            committed = await self.journal.commit(change)
        except InvalidInput as error:
            if change.end is None:
                raise
            # Whatever becomes of metadata, the run has to end.
            self.report(error, {"run_id": self.claimed.run.id})
            committed = await self.journal.commit(
                attrs.evolve(
                    change, events=own, jobs=jobs, run_metadata=None, thread_metadata=None,
                    message_metadata={},
                )
            )  # fmt: skip
        if committed.changed is not None:
            self._show(committed.changed)
        return committed

    def _show(self, changed: Changed) -> None:
        """Show in the contexts what a commit made of metadata, and what is held since."""
        context, draft, held = self.context, self.draft, self.held
        if changed.run is not None:
            renew(context, metadata=_with(changed.run, held.run_metadata))
        if changed.thread is not None:
            bags = _with(changed.thread, held.thread_metadata)
            renew(context, thread=attrs.evolve(context.thread, metadata=bags))
        of_message = changed.messages.get(draft.id)
        if of_message is not None:
            draft.bags = _with(of_message, held.message_metadata.get(draft.id))

    async def flush(self) -> None:
        """Write what is held, if there is anything."""
        held = self.held
        if held.events or held.run_metadata or held.thread_metadata or held.message_metadata:
            await self.commit(Commit())

    def rewriting(self) -> anyio.Lock:
        """Held while a message is stored again: the last one written must be the last one made."""
        if self._rewriting is None:
            self._rewriting = anyio.Lock()
        return self._rewriting

    async def go_on(self) -> None:
        """
        Go no further where the run is over, though a hook or a tool hid it (R-35).

        Raises:
            PluginError: A hook failed in code that swallowed its error.
        """
        if self.broken is not None:
            raise self.broken
        if self.signal.is_set():
            await anyio.lowlevel.checkpoint_if_cancelled()


def _with(bags: Metadata, held: Merge | None) -> Metadata:
    if held is None:
        return bags
    try:
        return held(bags)
    except InvalidInput:  # said when it is written
        return bags
