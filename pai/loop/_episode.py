"""An episode: what the loop keeps of a run while it works on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import anyio
import anyio.from_thread
import attrs

from pai.contexts import AsideItem, ReplaceValue, RunContext, RunPatch, Unset
from pai.definition import EMPTY_METADATA, MetadataPatch, MetadataSchemas, ModelSelection, Signal
from pai.errors import Fault, InvalidInput, PluginError
from pai.lifecycle import broken_hook
from pai.loop._agent import BoundAgent
from pai.loop._assemble import Assembly
from pai.loop._journal import Journal
from pai.ports import ModelDriver
from pai.protocol import (
    CallRecord,
    Claimed,
    Commit,
    Data,
    Event,
    Message,
    MessageMetadata,
    Metadata,
    PluginEvent,
    ThreadUpdated,
    ToolProgress,
    Usage,
    new_id,
)
from pai.schema import JsonObject, JsonValue, check_json, parse_stable

__all__ = ("Episode", "Report")

Report = Callable[[BaseException, Mapping[str, object]], None]
"""Takes an error whole, with what is known of where it happened (A-RUN-3)."""


class Episode:
    """
    One continuation of a run, from claim to settle.

    It is also what stands behind the contexts that hooks and tools are handed: they write data,
    progress, events and metadata through it.
    """

    __slots__ = (
        "_loop_thread", "_message_metadata", "agent", "assembly", "call_ids", "claimed", "context", "history_length", "journal",
        "last_message", "message_id", "messages", "open_calls", "patch", "report", "resolve", "selection",
        "signal", "step_index", "stop_reason", "tool_limiter", "usage",
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
    ) -> None:
        self.agent: Final = agent
        self.claimed: Final = claimed
        self.journal: Final = journal
        self.report: Final = report
        self.resolve: Final = resolve
        self.tool_limiter: Final = tool_limiter
        self.signal: Final = Signal()
        self.messages: list[Message] = []
        self.history_length = 0
        self.patch: RunPatch | None = None
        self.selection: ModelSelection | None = None
        self.usage = Usage()
        self.step_index = -1
        self.message_id = ""
        self.last_message: Message | None = None
        self.stop_reason: str | None = None
        self.call_ids: set[str] = set()
        self.open_calls: dict[str, CallRecord] = {}
        self.assembly: Assembly | None = None
        self._message_metadata: Metadata | None = None
        self._loop_thread = threading.get_ident()

    # ------------------------------------------------------------------ what code writes

    def write_data(self, name: str, value: object, id: str | None, transient: bool) -> None:  # noqa: A002
        """Check a data part and send it on (A-UI-2)."""
        schema = self.agent.definition.ui_data.get(name)
        if schema is None:
            known = ", ".join(sorted(self.agent.definition.ui_data)) or "none"
            raise InvalidInput(
                [Fault(name, f"is no data part of this agent; declared in ui_data: {known}")],
                subject="data part",
            )
        checked = self.aside("data", parse_stable(schema, value, at=name), name=name)
        if self.agent.chains.transform_aside:
            checked = parse_stable(schema, checked, at=name)
        self._send(Data(name, checked, id, transient))

    def progress(self, call_id: str, tool: str, value: object) -> None:
        """Check what a tool reports and send it on."""
        schema = self.agent.definition.tools[tool].tool.data
        if schema is not None:
            checked = parse_stable(schema, value, at="progress")
        else:
            if faults := check_json(value, at="progress"):
                raise InvalidInput(faults, subject="progress")
            checked = value  # type: ignore[assignment]  # checked just above
        self._send(ToolProgress(call_id, self.aside("progress", checked, name=tool)))

    def emit(self, name: str, value: object) -> None:
        """Send on a plugin's event."""
        if faults := check_json(value, at=name):
            raise InvalidInput(faults, subject="plugin event")
        self._send(PluginEvent(name, value))  # type: ignore[arg-type]  # checked just above

    def _send(self, event: Event) -> None:
        if threading.get_ident() == self._loop_thread:
            self.journal.add([event])
        else:
            anyio.from_thread.run_sync(self.journal.add, [event])

    def aside(
        self,
        kind: Literal["data", "progress", "error"],
        value: JsonValue,
        *,
        name: str | None = None,
    ) -> JsonValue:
        """What ``transform_aside`` makes of a value that is written beside the stream."""
        for hook in self.agent.chains.transform_aside:
            try:
                answer = hook.call(AsideItem(kind, value, name), self.context)
            except Exception as error:
                raise broken_hook(hook, error) from error
            if answer is None:
                continue
            if not isinstance(answer, ReplaceValue):
                raise wrong_answer(hook, answer, "ReplaceValue")
            value = answer.value
        return value

    # ------------------------------------------------------------------ metadata (A-META-5)

    async def update_metadata(
        self,
        run: MetadataPatch | None,
        thread: MetadataPatch | None,
        message: MetadataPatch | None,
    ) -> None:
        """Patch metadata and commit it at once, all or nothing."""
        change = Commit()
        self.write_metadata(change, run, thread, message)
        await self.journal.commit(change)

    def write_metadata(
        self,
        change: Commit,
        run: MetadataPatch | None,
        thread: MetadataPatch | None,
        message: MetadataPatch | None,
    ) -> None:
        """
        Put patched metadata into a change; contexts see it from now on.

        Raises:
            InvalidInput: A result fits its schema no more; nothing is changed.
        """
        definition = self.agent.definition
        run_bags = _patched(definition.run_metadata, self.context.metadata, run, "run_metadata")
        thread_bags = _patched(
            definition.thread_metadata, self.context.thread.metadata, thread, "thread_metadata"
        )
        message_bags = _patched(
            definition.message_metadata, self._message_bags(), message, "message_metadata"
        )
        if run_bags is not None:
            change.run_metadata = self.context.metadata = run_bags
        if thread_bags is not None:
            change.thread_metadata = thread_bags
            self.context.thread = attrs.evolve(self.context.thread, metadata=thread_bags)
            change.events.append(ThreadUpdated(metadata=public(thread_bags)))
        if message_bags is not None:
            self._message_metadata = message_bags
            if self.last_message is not None and self.last_message.id == self.message_id:
                change.message_metadata[self.message_id] = message_bags
            change.events.append(MessageMetadata(self.message_id, public(message_bags)))

    def _message_bags(self) -> Metadata:
        if self._message_metadata is None:
            schemas = self.agent.definition.message_metadata
            self._message_metadata = schemas.initial() if schemas else EMPTY_METADATA
        return self._message_metadata

    def begin_message(self) -> str:
        """A fresh id for the assistant message of the next step, and fresh metadata for it."""
        self.message_id = new_id()
        self._message_metadata = None
        return self.message_id

    def message_metadata(self) -> Metadata:
        """The metadata of the step's message, as far as hooks have patched it."""
        return self._message_bags()


def _patched(
    schemas: MetadataSchemas[Any, Any] | None,
    bags: Metadata,
    patch: MetadataPatch | Unset | None,
    at: str,
) -> Metadata | None:
    if patch is None or isinstance(patch, Unset) or not (patch.private or patch.public):
        return None
    if schemas is None:
        raise InvalidInput([Fault(at, "the agent declares no schemas for it")], subject="metadata")
    return schemas.patched(bags, patch, at=at)


def public(metadata: Metadata) -> JsonObject:
    """The public bag, as clients see it."""
    return dict(metadata.public)  # type: ignore[arg-type]  # bags hold checked JSON


def wrong_answer(hook: Any, answer: object, allowed: str) -> PluginError:
    """A hook returned what its card does not allow."""
    return PluginError(
        f"plugin {hook.plugin!r} returned {type(answer).__name__} from {hook.phase};"
        f" it may return None or {allowed}",
        plugin=hook.plugin,
        distribution=hook.distribution,
        phase=hook.phase,
    )

