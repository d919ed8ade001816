"""Making the short texts of side jobs: titles and labels (A-TITLE, A-REASON)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any, Literal

from pai.contexts import AsideItem
from pai.definition import (
    AgentBehaviorInput,
    ReasoningSummaryConfig,
    ReasoningSummaryGeneratorInput,
    Signal,
    ThreadRef,
    ThreadTitleConfig,
    ThreadTitleGeneratorInput,
)
from pai.errors import Fault, InvalidInput
from pai.loop._agent import as_instructions
from pai.loop._aside import asked_aside
from pai.loop._end_jobs import title_due
from pai.loop._episode import Episode
from pai.loop._history import repaired
from pai.loop._request import select_model
from pai.ports import ModelDriver, ModelRequest
from pai.protocol import (
    JobRecord,
    Message,
    NewLabel,
    NewTitle,
    RunSource,
    TextDelta,
    TextPart,
    ThreadRecord,
)

__all__ = ("make_label", "make_title", "thread_ref")

TITLE_INSTRUCTIONS = (
    "Write a title for the conversation below: at most six words, in its language, without quotation"
    " marks and without a full stop. Answer with the title alone."
)
LABEL_INSTRUCTIONS = (
    "Say in at most eight words what the thoughts below are about, in their language, without"
    " quotation marks and without a full stop. Answer with these words alone."
)

LONGEST = 200
"""Characters of a title or a label; a longer one is cut."""

_FIRST, _LAST = 2_000, 4_000
"""Characters from the beginning and from the end of a text that a model is shown, if it is longer."""

_QUOTES = "\"'`\u201c\u201d\u201e\u00ab\u00bb\u2018\u2019"


async def make_title(episode: Episode, source: RunSource, signal: Signal) -> NewTitle | None:
    """
    A title for the thread, if one may still be made for it.

    Args:
        episode: The run's, or one that was rebuilt.
        source: The run and its thread, as of now.
        signal: Set when the work is to stop.
    """
    config = episode.agent.definition.thread_titles
    messages, now = repaired(source.messages), datetime.now(UTC)
    # Looked at once more: an earlier run may have got its title meanwhile.
    if config is None or not title_due(config, source.thread, len(messages), source.turn, now):
        return None
    context = episode.context
    given: ThreadTitleGeneratorInput[Any] = ThreadTitleGeneratorInput(
        context.runtime_context,
        thread_ref(source.thread),
        context.id,
        context.thread_id,
        context.operation,
        context.started_at,
        tuple(messages),
        signal,
    )
    text = await _made(
        episode, config, given, "title", TITLE_INSTRUCTIONS, lambda: _transcript(messages)
    )
    if text is None:
        return None
    return NewTitle(text, config.replaces, now, len(messages), source.turn)


async def make_label(episode: Episode, job: JobRecord, signal: Signal) -> NewLabel | None:
    """A label for the part of reasoning that the job tells of."""
    config = episode.agent.definition.reasoning_summary
    if config is None:
        return None
    message_id, ordinal = str(job.payload["messageId"]), int(job.payload["ordinal"])  # type: ignore[arg-type]  # as it was written
    text = str(job.payload["text"])
    context = episode.context
    given: ReasoningSummaryGeneratorInput[Any] = ReasoningSummaryGeneratorInput(
        context.runtime_context,
        context.thread,
        context.id,
        context.thread_id,
        message_id,
        ordinal,
        context.operation,
        context.started_at,
        text,
        signal,
    )
    made = await _made(episode, config, given, "label", LABEL_INSTRUCTIONS, lambda: _cut(text))
    return None if made is None else NewLabel(message_id, ordinal, made)


def thread_ref(thread: ThreadRecord) -> ThreadRef:
    """The thread, as code of a run sees it."""
    return ThreadRef(
        thread.key.thread_id,
        thread.title,
        thread.title_source,
        thread.metadata,
        thread.created_at,
    )


async def _made(
    episode: Episode,
    config: ThreadTitleConfig | ReasoningSummaryConfig,
    given: Any,
    kind: Literal["title", "label"],
    instructions: str,
    shown: Callable[[], str],
) -> str | None:
    """The text, from the generator or from a model; as it may be written."""
    if config.generator is not None:
        made: Any = config.generator(given)
        text = await made if inspect.isawaitable(made) else made
        if text is None:
            return None
        if not isinstance(text, str):
            raise TypeError(f"a generator of a {kind} gives text or None, not {type(text)}")
    else:
        own: Any = instructions if config.instructions is None else config.instructions
        if callable(own):
            own = own(given)
            own = await own if inspect.isawaitable(own) else own
        model = await _model(episode, config, given.signal)
        request = ModelRequest(
            model,
            (_asking(given.run_id, shown()),),
            as_instructions(own),
            capabilities=episode.agent.bindings,
        )
        text = _plain(await _answer(model, request)).strip(_QUOTES)
    text = _plain(text)
    for hook in episode.agent.chains.transform_aside:
        if text:
            text = _plain(str(asked_aside(hook, AsideItem(kind, text), episode.context, _as_text)))
    return text or None


async def _model(
    episode: Episode, config: ThreadTitleConfig | ReasoningSummaryConfig, signal: Signal
) -> ModelDriver:
    """The config's model, else the run's: bare, none of its settings go with it (A-MODEL-7)."""
    source: Any = config.model
    if source is None:
        return (await select_model(episode)).model  # type: ignore[return-value]  # resolved
    if not isinstance(source, str) and not hasattr(source, "stream"):
        context = episode.context
        source = source(
            AgentBehaviorInput(
                context.runtime_context,
                context.identity,
                context.client_data,
                context.thread_id,
                signal,
            )
        )
        source = await source if inspect.isawaitable(source) else source
    return episode.resolve(source)


async def _answer(model: ModelDriver, request: ModelRequest) -> str:
    texts = []
    stream: Any = model.stream(request)
    async with aclosing(stream):
        async for item in stream:
            for part in item if type(item) is list else [item]:
                if type(part) is TextDelta:
                    texts.append(part.text)
    return "".join(texts)


def _asking(run_id: str, text: str) -> Message:
    return Message("side", "user", (TextPart(text),), run_id, datetime.now(UTC))


def _transcript(messages: list[Message]) -> str:
    """The conversation as text; of a long one its beginning and its end."""
    lines = [f"{m.role}: {m.text}" for m in messages if m.role in ("user", "assistant") and m.text]
    return _cut("\n\n".join(lines))


def _cut(text: str) -> str:
    if len(text) <= _FIRST + _LAST:
        return text
    return f"{text[:_FIRST]}\n[...]\n{text[-_LAST:]}"


def _plain(text: str) -> str:
    """One line that any store takes, not too long."""
    clean = text.replace("\x00", " ").encode("utf-8", "replace").decode("utf-8")
    return " ".join(clean.split())[:LONGEST].strip()


def _as_text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput([Fault("value", "a title or a label is text")])
    return value
