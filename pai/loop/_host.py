"""What stands behind the contexts of hooks and tools: they write through it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pai.contexts import Records
from pai.definition import MetadataPatch
from pai.loop._aside import emit, write_data, write_progress
from pai.loop._episode import Episode
from pai.loop._metadata import patch_metadata
from pai.protocol import Message

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
        patch_metadata(episode, run, thread, message)
        await episode.flush()

    @property
    def capabilities(self) -> Mapping[str, object]:
        return self._episode.agent.bindings

    def records_of(self, plugin: str) -> Records:
        return self._episode.journal.records_of(plugin)


class CallHost:
    """Behind :class:`~pai.definition.ToolContext`."""

    __slots__ = ("_call_id", "_episode", "_tool")

    def __init__(self, episode: Episode, tool: str, call_id: str) -> None:
        self._episode = episode
        self._tool = tool
        self._call_id = call_id

    def write_data(self, name: str, value: object, id: str | None, transient: bool) -> None:
        write_data(self._episode, name, value, id, transient)

    def progress(self, value: object) -> None:
        write_progress(self._episode, self._call_id, self._tool, value)
