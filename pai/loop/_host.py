"""What stands behind the contexts of hooks and tools: they write through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pai.contexts import Records, renew
from pai.definition import MetadataPatch, ToolDefinition
from pai.errors import InvalidInput, ToolError
from pai.loop._aside import emit, write_data, write_progress
from pai.loop._children import run_child
from pai.loop._episode import Episode
from pai.loop._metadata import patch_metadata
from pai.loop._wait import CallSuspended, Wait
from pai.protocol import GIVEN_UP, Message, PendingCall, ThreadKey, child_id
from pai.schema import JsonValue, check_json

__all__ = ("CallHost", "HookHost")


class HookHost:
    """Behind :class:`~pai.contexts.RunContext`."""

    __slots__ = ("_episode",)

    def __init__(self, episode: Episode) -> None:
        self._episode = episode

    @property
    def messages(self) -> Sequence[Message]:
        return self._episode.messages

    def write_data(self, name: str, value: object, id: str | None, transient: bool) -> None:
        write_data(self._episode, name, value, id, transient)

    def emit(self, name: str, value: object) -> None:
        emit(self._episode, name, value)

    async def update_metadata(
        self,
        run: MetadataPatch | None,
        thread: MetadataPatch | None,
        message: MetadataPatch | None,
    ) -> None:
        episode = self._episode
        episode.journal.check()
        # What is held already is no part of this: it stays, whatever becomes of the patch.
        await episode.flush()
        context, draft = episode.context, episode.draft
        before = context.metadata, context.thread, draft.bags
        patch_metadata(episode, run, thread, message)
        try:
            await episode.flush()
        except InvalidInput:
            # It fitted what was known here, and somebody else has written meanwhile.
            renew(context, metadata=before[0], thread=before[1])
            draft.bags = before[2]
            raise

    @property
    def capabilities(self) -> Mapping[str, object]:
        return self._episode.agent.bindings

    def records_of(self, plugin: str) -> Records:
        return self._episode.journal.records_of(plugin)


class CallHost:
    """
    Behind :class:`~pai.definition.ToolContext`.

    Args:
        episode: The run.
        tool: The tool.
        call_id: The call.
        answers: What earlier calls of ``ctx.suspend`` were answered, as JSON.

    Attributes:
        waits: What the body waits for, once it has asked for more than it was answered.
        children: Subagents that wait for answers: name, place, and what they wait for.
    """

    __slots__ = (
        "_answers", "_asked", "_call_id", "_episode", "_ran", "_tool", "_under_way", "children",
        "waits",
    )  # fmt: skip

    def __init__(
        self,
        episode: Episode,
        tool: ToolDefinition[Any],
        call_id: str,
        answers: Sequence[JsonValue] = (),
    ) -> None:
        self._episode = episode
        self._tool = tool
        self._call_id = call_id
        self._answers = answers
        self._asked = 0
        self._ran = 0
        # Places of subagents that nobody has seen end.
        self._under_way: set[int] = set()
        self.waits: Wait | None = None
        self.children: list[tuple[str, int, Sequence[PendingCall]]] = []

    @property
    def held(self) -> bool:
        """Whether the body has ended to wait."""
        return self.waits is not None or bool(self.children)

    async def run_agent(self, name: str, given: object) -> JsonValue:
        """What the subagent has made; where it waits, the body ends."""
        place, self._ran = self._ran, self._ran + 1
        self._under_way.add(place)
        end = await run_child(self._episode, name, given, self._call_id, place)
        self._under_way.discard(place)
        if end.status == "suspended":
            self.children.append((name, place, end.pending))
            raise CallSuspended
        if end.usage is not None:
            self._episode.usage = self._episode.usage + end.usage
        if end.status != "completed":
            words = f": {end.reason}" if end.status == "blocked" and end.reason else ""
            raise ToolError(f"The subagent {name!r} ended as {end.status}{words}.")
        return end.value

    async def leave(self) -> None:
        """Cancel the subagents that the body has ended without: nobody waits for them."""
        key, run_id = self._episode.journal.key, self._episode.claimed.run.id
        for place in self._under_way:
            own = child_id(key.thread_id, run_id, self._call_id, place)
            child = ThreadKey(key.partition, own)
            await self._episode.children.cancel(child, own, GIVEN_UP)

    def write_data(self, name: str, value: object, id: str | None, transient: bool) -> None:
        write_data(self._episode, name, value, id, transient)

    def progress(self, value: object) -> None:
        write_progress(self._episode, self._call_id, self._tool, value)

    async def suspend(self, payload: object) -> object:
        """The next answer; where there is none yet, the body ends (R-22)."""
        place, self._asked = self._asked, self._asked + 1
        schemas = self._tool.suspend
        if place < len(self._answers):
            answer = self._answers[place]
            return answer if schemas is None else schemas.answer_schema.parse(answer, at="answer")
        if self.waits is None:
            if schemas is not None:
                schema = schemas.payload_schema
                shown = schema.dump(schema.parse(payload, at="payload"))
            elif faults := check_json(payload, at="payload"):
                raise InvalidInput(faults, subject="ctx.suspend")
            else:
                shown = payload  # type: ignore[assignment]  # checked just above
            self.waits = Wait("suspend", shown, self._tool.expires_after)
        raise CallSuspended
