"""What the workers of a campaign run, and what must come of it: both follow from a run's number."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import attrs

from pai import (
    AgentDefinition,
    DataPart,
    MetadataPatch,
    MetadataSchemas,
    ReasoningSummaryConfig,
    RunPatch,
    StepPatch,
    Subagent,
    Suspend,
    ThreadTitleConfig,
    ToolCallPart,
    ToolContext,
    define_agent,
    define_tool,
    hookimpl,
    tool,
)
from pai.protocol import MessagePart, MessageView
from pai.testing import Call, Data, Reason, ScriptedModel, Turn

from .answering import ASKED, denied, output_of, provided_in
from .scripts import turns_of

__all__ = ("LABEL", "Bag", "Marks", "agent", "faults")

INTERRUPTED = "interrupted"
_ELSEWHERE = ("client", "brought", "helper")
"""Tools whose work no worker of the run does: one that dies is in the midst of none."""
LABEL = "a label"


@attrs.frozen
class Bag:
    marks: dict[str, int] = attrs.Factory(dict)
    edited: int = -1


@attrs.frozen
class Number:
    n: int


SCHEMAS = MetadataSchemas(private=Bag, public=Bag)


class Marks:
    """Lines that processes append to one file, each whole, whatever kills them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, *words: object) -> None:
        line = " ".join(map(str, words)) + "\n"
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)

    def lines(self) -> list[list[str]]:
        text = self.path.read_text("utf-8") if self.path.exists() else ""
        return [line.split() for line in text.splitlines()]


# ---------------------------------------------------------------------------- the agent


def _turn(request: Any) -> Turn:
    """The next turn, as the history tells it: another worker goes on with the same script."""
    turns = [message.role for message in reversed(request.messages)]
    done = turns.index("user")
    kind, number = request.messages[-1 - done].parts[0].text.split()
    return turns_of(kind, int(number))[done]


class Ledger:
    """Writes metadata and records by every door that a plugin has, and slows the stream."""

    def __init__(self, pace: float, marks: Marks) -> None:
        self._pace = pace
        self._marks = marks

    @hookimpl
    async def prepare_run(self, run: Any) -> RunPatch:
        own = MetadataPatch(private={"marks": {"run": 1}}, public={"marks": {"run": 1}})
        return RunPatch(run_metadata=own, message_metadata=own)

    @hookimpl
    async def prepare_model_step(self, step: Any, records: Any) -> StepPatch:
        run = step.run
        # Steps are counted anew in each episode.
        own = [m for m in run.messages if m.run_id == run.id and m.role == "assistant"]
        index = len(own)
        await records.put(f"{run.id}/{index}", index)
        marks = {**run.thread.metadata.public["marks"], run.id: index}
        # One at once, one with the step.
        await run.update_metadata(thread=MetadataPatch(public={"marks": marks}))
        return StepPatch(run_metadata=MetadataPatch(private={"marks": {"run": 1, "step": index}}))

    @hookimpl
    async def wrap_model_call(self, step: Any, call_model: Any) -> Any:
        async for part in call_model(step.request):
            yield part
            await anyio.sleep(self._pace)

    @hookimpl
    async def after_tool_result(self, result: Any, records: Any) -> None:
        await records.put(f"{result.run.id}/{result.call_id}", result.outcome)

    @hookimpl
    def run_settled(self, run: Any) -> None:
        self._marks.add("settled", run.id)


def agent(marks: Marks, *, pace: float = 0.002) -> AgentDefinition[Any]:
    """
    The agent of a campaign.

    Args:
        marks: Where tools leave a mark each time they run.
        pace: Seconds between two parts of a model's stream, and that a tool works.
    """

    def turn(request: Any) -> Turn:
        for value, times in provided_in(request.messages).items():
            if times > 1:
                marks.add("shown", times, "times", value)
        return _turn(request)

    def ran(ctx: ToolContext[Any]) -> None:
        marks.add("ran", ctx.run_id, ctx.call_id, os.getpid())

    async def work(ctx: ToolContext[Any], n: int) -> int:
        ran(ctx)
        ctx.write_data("note", ctx.call_id, id=ctx.call_id)
        await anyio.sleep(pace)
        ctx.progress(n)
        await anyio.sleep(pace)
        return n + 1

    @tool
    async def once(ctx: ToolContext[Any], n: int) -> int:
        """Work that must not be done twice."""
        return await work(ctx, n)

    @tool(idempotent=True)
    async def again(ctx: ToolContext[Any], n: int, slow: bool = False) -> int:
        """Work that may be done twice, and may last until others have answered."""
        if slow:
            await anyio.sleep(20 * pace)
        return await work(ctx, n)

    @tool
    def sync(ctx: ToolContext[Any], n: int) -> int:
        """Work in a thread."""
        ran(ctx)
        return n + 1

    @tool(needs_approval=True)
    async def gated(ctx: ToolContext[Any], n: int) -> int:
        """Work that must be approved, and not be done twice."""
        return await work(ctx, n)

    @tool(suspend=Suspend(payload=str, answer=str))
    async def asks(ctx: ToolContext[Any], n: int) -> str:
        """Work that asks somebody, twice, and begins anew when it is answered."""
        ran(ctx)
        answers: list[Any] = [await ctx.suspend(payload) for payload in ASKED]
        return "".join(answers)

    @tool
    async def broken(ctx: ToolContext[Any], n: int) -> int:
        """Work that fails."""
        ran(ctx)
        raise RuntimeError(str(n))

    client = define_tool(
        name="client", description="Work that only the client can do.", input=Number, output=str
    )
    model = ScriptedModel(turn, chunk=6)
    helper = define_agent(name="helper", model=model, tools={"gated": gated}, ui_data={"note": str})
    return define_agent(
        name="a",
        model=model,
        tools={
            "once": once,
            "again": again,
            "sync": sync,
            "broken": broken,
            "gated": gated,
            "asks": asks,
            "client": client,
        },
        subagents={"helper": Subagent(helper, "Does what must be approved.")},
        thread_titles=ThreadTitleConfig(
            "refresh", generator=lambda given: f"after {given.run_id}", overwrite="always"
        ),
        reasoning_summary=ReasoningSummaryConfig(generator=lambda _: LABEL),
        ui_data={"note": str},
        run_metadata=SCHEMAS,
        thread_metadata=SCHEMAS,
        message_metadata=SCHEMAS,
        lifecycle=Ledger(pace, marks),
    )


# ---------------------------------------------------------------------------- what must come of it


def _shape(part: MessagePart) -> tuple[str, str]:
    if isinstance(part, ToolCallPart):
        return "call", part.call_id
    if isinstance(part, DataPart):
        return "data", str(part.value)
    return part.type, getattr(part, "text", "")


def _expected(turn: Turn) -> list[tuple[str, str]]:
    items: Sequence[Any] = turn if isinstance(turn, list) else [turn]
    found = []
    for item in items:
        if isinstance(item, str):
            found.append(("text", item))
        elif isinstance(item, Reason):
            found.append(("reasoning", item.text))
        elif isinstance(item, Data):
            found.append(("data", str(item.value)))
        elif isinstance(item, Call):
            found.append(("call", str(item.call_id)))
    return found


def faults(
    kind: str, number: int, status: str, messages: Sequence[MessageView], ran: Counter[str]
) -> Iterator[str]:
    """
    What is wrong with what a run left.

    Args:
        kind: Its kind.
        number: Its number, or its parent's.
        status: How it ended.
        messages: What it said.
        ran: How often its calls' bodies ran.
    """
    turns = turns_of(kind, number)
    # The subagent has no plugin that would write any.
    metadata = {} if kind == "help" else {"marks": {"run": 1}, "edited": -1}
    if len(messages) != len(turns) and (status == "completed" or len(messages) > len(turns)):
        yield f"{len(messages)} messages instead of {len(turns)}"
    for index, message in enumerate(messages[: len(turns)]):
        whole = status == "completed" or index < len(messages) - 1
        yield from _message_faults(turns[index], message.parts, whole)
        yield from _call_faults(number, message.parts, ran, whole=status == "completed")
        if message.metadata != metadata:
            yield f"message {index} lacks its metadata: {message.metadata}"
    stored = {
        part.call_id for message in messages for part in message.parts
        if isinstance(part, ToolCallPart)
    }  # fmt: skip
    for call_id, times in ran.items():
        if times > 1 and not call_id.startswith(("again", "asks")):
            yield f"{call_id} ran {times} times"
        if call_id not in stored:
            yield f"{call_id} ran and is not in the history"


def _message_faults(turn: Turn, parts: Sequence[MessagePart], whole: bool) -> Iterator[str]:
    noted = {f"{part.call_id}" for part in parts if isinstance(part, ToolCallPart)}
    expected = _expected(turn)
    found = [_shape(part) for part in parts]
    # What tools write stands where it was shown: anywhere behind the call, once.
    written = [shape for shape in found if shape[0] == "data" and shape[1] in noted]
    said = [shape for shape in found if shape not in written]
    if len(set(written)) < len(written):
        yield f"data twice: {written}"
    if whole:
        if said != expected:
            yield f"said {said} instead of {expected}"
        return
    for index, (kind, text) in enumerate(said):
        if index >= len(expected) or expected[index][0] != kind:
            yield f"said {said}, which does not begin {expected}"
            return
        last = index == len(said) - 1
        if not (expected[index][1].startswith(text) if last else expected[index][1] == text):
            yield f"said {said}, which does not begin {expected}"
            return


def _call_faults(
    number: int, parts: Sequence[MessagePart], ran: Counter[str], *, whole: bool
) -> Iterator[str]:
    notes = {part.value for part in parts if isinstance(part, DataPart)}
    for part in parts:
        if not isinstance(part, ToolCallPart):
            continue
        times = ran[part.call_id]
        if part.outcome is None:
            yield f"{part.call_id} has no outcome"
        elif part.outcome == "completed":
            if part.output != output_of(number, part.tool, part.call_id):
                yield f"{part.call_id} gave {part.output}"
            if bool(times) is (part.tool in _ELSEWHERE):
                yield f"{part.call_id} completed and ran {times} times"
            if part.tool in ("once", "again", "gated") and part.call_id not in notes:
                yield f"{part.call_id} lost its data"
            if part.tool == "gated" and denied(number):
                yield f"{part.call_id} was denied and ran"
        elif part.outcome == "denied":
            if part.tool != "gated" or not denied(number) or times:
                yield f"{part.call_id} is denied, and ran {times} times"
        elif part.outcome == "failed":
            if part.tool not in ("broken", "helper"):
                yield f"{part.call_id} failed: {part.error}"
        elif part.outcome != INTERRUPTED or (whole and part.tool in _ELSEWHERE):
            yield f"{part.call_id} is {part.outcome}"
