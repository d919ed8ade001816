"""The plugin: its hooks, its options, and :func:`rag`, which makes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any, Final, Literal, cast

import attrs

from pai import (
    DefinitionError,
    Fault,
    Message,
    ModelRequest,
    RunContext,
    StepContext,
    StepPatch,
    StreamPart,
    hookimpl,
)
from pai_rag._index import DEFAULT_URL, Index
from pai_rag._key import check_key, text_fault
from pai_rag._passage import Passage
from pai_rag._searcher import is_missing, searcher_for
from pai_rag._tail import fitting
from pai_rag._threads import in_thread
from pai_rag._turn import Turn

__all__ = ("Options", "Rag", "rag", "register_cli", "register_lifecycle")

Partition = str | Callable[[RunContext[Any]], str]

_TURN: Final = "turn"


class Rag:
    """Retrieval for each message of a user; made by :func:`rag`."""

    name = "rag"

    def __init__(
        self, url: str, partition: Partition, *, top: int, max_chars: int, uncited: bool
    ) -> None:
        self._url: Final = url
        self._partition: Final = partition
        self._top: Final = top
        self._max_chars: Final = max_chars
        self._uncited: Final = uncited

    @hookimpl
    async def prepare_model_step(
        self, step: StepContext[Any], state: dict[str, object]
    ) -> StepPatch | None:
        """Put what fits the user's message behind it; it stays the same for the whole episode."""
        messages = step.request.messages
        at = _question(messages, step.run.id)
        if at is None:
            return None
        message = messages[at]
        turn = cast("Turn | None", state.get(_TURN))
        if turn is None:
            passages = fitting(await self._found(message.text, step.run), self._max_chars)
            turn = state[_TURN] = Turn(message, passages, uncited=self._uncited)
        turn.asked = False
        if not turn:
            return None
        return StepPatch(messages=(*messages[:at], turn.shown(message), *messages[at + 1 :]))

    @hookimpl
    def wrap_model_call(
        self,
        step: StepContext[Any],
        call_model: Callable[[ModelRequest], AsyncIterator[StreamPart]],
        state: dict[str, object],
    ) -> AsyncIterator[StreamPart]:
        """Note that the model is asked, and that it was not another plugin that answered."""
        if turn := cast("Turn | None", state.get(_TURN)):
            turn.asked = True
        return call_model(step.request)

    @hookimpl
    def transform_step_stream(
        self, stream: AsyncIterator[StreamPart], state: dict[str, object]
    ) -> AsyncIterator[StreamPart]:
        """Add the sources that the answer cites."""
        turn = cast("Turn | None", state.get(_TURN))
        return turn.cited(stream) if turn else stream

    async def _found(self, query: str, run: RunContext[Any]) -> list[Passage]:
        partition = self._partition if isinstance(self._partition, str) else self._partition(run)
        check_key(partition, "partition")
        if not query.strip():
            return []
        return await in_thread(partial(self._search, query, partition))

    def _search(self, query: str, partition: str) -> list[Passage]:
        """
        Search with a connection of its own.

        Plugins are not told when a program ends, so there is nobody to close one that is kept; and
        an index that is made, or made anew, while the program runs is found.
        """
        index = Index(self._url)
        try:
            if not index.open(create=False):
                return []
            return index.search(query, self._top, partition=partition)
        finally:
            index.close()


def _question(messages: Sequence[Message], run_id: str) -> int | None:
    """
    Where the message is that the run answers.

    That is the last one of the user, with nothing but the run's own answers behind it: a run that
    was triggered goes on from an answer, and nobody has asked.
    """
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "user":
            return at
        if messages[at].run_id != run_id:
            return None
    return None


def rag(
    index: str = DEFAULT_URL,
    *,
    partition: Partition = "default",
    top: int = 5,
    max_chars: int = 6000,
    uncited: Literal["all", "none"] = "all",
) -> Rag:
    """
    Make a plugin that gives the model what an index has on the user's message.

    It searches once for each message, and puts the passages behind that message in what the model
    sees: not into the instructions, not before older messages, and never into the thread. The
    passages that the answer cites become source parts of it. Where nothing is found, or there is no
    index yet, everything stays as it is.

    Args:
        index: ``sqlite:///file.db`` or ``postgresql://...``, as ``pai rag index`` made it.
        partition: Where to look; or a function of the run that says so, which must not block:
            ``lambda run: run.identity.workspace_id``.
        top: Passages a message gets at most.
        max_chars: Characters they have together at most.
        uncited: What becomes a source if the answer cites nothing: ``"all"`` passages, or
            ``"none"``.

    Raises:
        DefinitionError: All mistakes at once.
    """
    faults: list[Fault] = []
    try:
        searcher_for(index)
    except DefinitionError as error:
        faults += error.faults
    given: object = partition
    if isinstance(given, str):
        if told := text_fault(given):
            faults.append(Fault("partition", told))
    elif not callable(given):
        faults.append(Fault("partition", "expected text, or a function of the run"))
    for name, number in (("top", top), ("max_chars", max_chars)):
        if type(number) is not int or number < 1:
            faults.append(Fault(name, "expected a whole number of at least 1"))
    if uncited not in {"all", "none"}:
        faults.append(Fault("uncited", 'expected "all" or "none"'))
    if faults:
        raise DefinitionError(faults, subject="rag")
    return Rag(index, partition, top=top, max_chars=max_chars, uncited=uncited == "all")


@attrs.frozen
class Options:
    """
    What a configuration file may say; see :func:`rag`.

    Args:
        index: Where the index is; a SQLite file that is missing means that there is nothing to do.
        partition: Where to look.
        top: Passages a message gets at most.
        max_chars: Characters they have together at most.
        uncited: What becomes a source if the answer cites nothing.
    """

    index: str = DEFAULT_URL
    partition: str = "default"
    top: int = 5
    max_chars: int = 6000
    uncited: Literal["all", "none"] = "all"


@hookimpl
def register_lifecycle(options: object) -> Rag | None:
    """Give the plugin that the options describe; it stands aside where there is no index file."""
    chosen = options if isinstance(options, Options) else Options()
    plugin = rag(
        chosen.index,
        partition=chosen.partition,
        top=chosen.top,
        max_chars=chosen.max_chars,
        uncited=chosen.uncited,
    )
    return None if is_missing(chosen.index) else plugin


@hookimpl
def register_cli(app: object) -> None:
    """Add ``pai rag index`` and ``pai rag search``."""
    from pai_rag._commands import commands

    cast("Any", app).command(commands())
