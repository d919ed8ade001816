"""Faults that other runtimes were reported for, each turned round."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pai import TextPart, ToolCallPart, Usage, define_agent, hookimpl, tool, until_finish_reason
from pai.models import OpenAIChat, OpenAIResponses
from pai.testing import Call, Finish, ScriptedModel

from ..models.chat_cases import CHAT, call, chunk
from ..models.edge_server import Reply, stream
from ..models.responses_cases import CREATED, RESPONSES, USAGE, ended, function
from ..played import play
from .double import FOREIGN, Cls, Double, saying

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("cls", [OpenAIChat, OpenAIResponses])

ran: list[int] = []


@tool
def f(ctx: Any, a: int) -> int:
    """Do it."""
    ran.append(a)
    return a


def agent(cls: Cls, *replies: Reply, **fields: Any) -> tuple[Any, Double]:
    ran.clear()
    double = Double(replies)
    model = cls("m", base_url=FOREIGN, api_key="k")
    return define_agent(
        name="a", model=model, tools={"f": f}, wrap_transport=double.wrap, **fields
    ), double


def cut_off(cls: Cls) -> Reply:
    """A whole call, and behind it the output limit."""
    if cls is OpenAIChat:
        return stream(call('{"a": 1}', call_id="1", name="f"), chunk({}, "length"), "[DONE]")
    why: dict[str, Any] = {"incomplete_details": {"reason": "max_output_tokens"}, "usage": USAGE}
    return stream(CREATED, *function("f", '{"a": 1}'), ended("incomplete", **why))


@BOTH
async def test_a_length_behind_calls_is_not_hidden(cls: Cls) -> None:
    """No call of a step that was cut off runs; the model is told, and may write less."""
    definition, double = agent(cls, cut_off(cls), saying(cls))
    played = await play(definition)
    (part,) = [p for m in played.state.messages for p in m.parts if isinstance(p, ToolCallPart)]
    assert (part.outcome, ran) == ("truncated", [])
    assert [event.reason for event in played.of("step-finished")] == ["length", "stop"]
    assert "output limit" in str(double.bodies[1])
    assert played.result.text == "ab"


@BOTH
async def test_a_length_behind_calls_can_end_the_run(cls: Cls) -> None:
    """O-2"""
    definition, double = agent(
        cls, cut_off(cls), saying(cls), stop_when=until_finish_reason("length")
    )
    played = await play(definition)
    assert (played.result.stop_reason, len(double.raw)) == ("finish_reason", 1)


@BOTH
async def test_text_between_two_pieces_of_an_input(cls: Cls) -> None:
    """Both stay whole: the call runs with its input, the text is where it was said."""
    case = (CHAT if cls is OpenAIChat else RESPONSES)["text between arguments"]
    definition, _ = agent(cls, stream(*case.events), saying(cls))
    played = await play(definition)
    assert (played.errors, ran) == ([], [1])
    message = played.state.messages[1]
    assert [part.type for part in message.parts].count("tool-call") == 1
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    assert texts == (case.told or {})["text"]


@pytest.mark.parametrize("when", ["tool", "plan"])
async def test_usage_is_not_lost_when_the_run_is_cancelled(when: str) -> None:
    """What a step has used was used, though the run ends before the step does."""
    reached = anyio.Event()

    async def hang() -> None:
        reached.set()
        await anyio.sleep_forever()

    @tool
    async def slow(ctx: Any) -> str:
        """Never end."""
        await hang()
        return "never"

    class Slow:
        @hookimpl
        async def before_tool_call(self) -> None:
            await hang()

    async def cancel(run: Any) -> None:
        await reached.wait()
        await run.cancel("enough")

    model = ScriptedModel([[Call("slow"), Finish("tool-calls", Usage(5, 7, 12))]])
    definition = define_agent(name="a", model=model, tools={"slow": slow})
    played = await play(definition, plugins=[Slow()] if when == "plan" else [], during=cancel)
    assert played.result.status == "cancelled"
    assert played.result.usage == Usage(5, 7, 12)
    assert played.state.runs[0].usage == Usage(5, 7, 12)
    (finished,) = played.of("step-finished")
    assert finished.usage == Usage(5, 7, 12)
