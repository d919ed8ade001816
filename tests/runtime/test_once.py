"""Runs without a thread: what they may be given beside JSON, and messages in place of one (O-8)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from pai import (
    InvalidInput,
    Message,
    Respond,
    TextPart,
    ToolCallPart,
    UnknownOptionError,
    define_agent,
    hookimpl,
    run_once,
    run_once_sync,
    step_limit,
    tool,
)
from pai.testing import Call, ScriptedModel

pytestmark = pytest.mark.anyio

HISTORY: list[Any] = [
    {"role": "user", "content": "one"},
    {"role": "assistant", "content": ["two", {"type": "text", "text": "!"}]},
]
THREE: dict[str, Any] = {"role": "user", "content": [TextPart("three")]}


def said(model: ScriptedModel) -> list[tuple[str, str]]:
    return [(each.role, each.text) for each in model.requests[0].messages]


@pytest.mark.parametrize(
    ("content", "messages"), [("three", HISTORY), (None, [*HISTORY, THREE]), ("three", tuple(HISTORY))]
)  # fmt: skip
async def test_what_was_said_before(content, messages) -> None:
    """The last message of a user is what the run answers."""
    inputs: list[Any] = []

    class Looks:
        @hookimpl
        def prepare_run(self, run):
            inputs.append((run.operation, run.input.text, [each.text for each in run.messages]))

    model = ScriptedModel(["four"])
    agent = define_agent(name="a", model=model, lifecycle=Looks())
    result = await run_once(agent, content, messages=messages)
    assert result.text == "four"
    assert said(model) == [("user", "one"), ("assistant", "two!"), ("user", "three")]
    assert inputs == [("send", "three", ["one", "two!", "three"])]


async def test_an_assistants_word_is_the_last() -> None:
    model = ScriptedModel(["four"])
    result = await run_once(define_agent(name="a", model=model), messages=HISTORY)
    assert result.text == "four"
    assert said(model)[-1] == ("assistant", "two!")


async def test_messages_of_another_run() -> None:
    """As hooks or clients have them; what is open in them is repaired (R-15)."""
    now = datetime.now(UTC)
    called = Message("m", "assistant", (ToolCallPart("c", "add", {"a": 1}),), "r", now)
    first = await run_once(define_agent(name="a", model=ScriptedModel(["two"])), "one")
    assert first.message is not None
    model = ScriptedModel(["four"])
    agent = define_agent(name="a", model=model)
    await run_once(agent, "three", messages=[HISTORY[0], first.message, called])
    asked = model.requests[0].messages
    assert [each.text for each in asked] == ["one", "two", "", "three"]
    call = asked[2].parts[0]
    assert isinstance(call, ToolCallPart)
    assert call.outcome == "interrupted"


async def test_accept_message_is_asked_of_the_last_alone() -> None:
    asked: list[str] = []

    class Accepts:
        @hookimpl
        def accept_message(self, message):
            asked.append(message.text)
            return Respond("no")

    agent = define_agent(name="a", model=ScriptedModel(), lifecycle=Accepts())
    assert (await run_once(agent, messages=[*HISTORY, THREE])).text == "no"
    assert asked == ["three"]


@pytest.mark.parametrize(
    ("messages", "paths"),
    [
        ("hi", ["messages"]),
        ([5, {"role": "system", "content": "x"}], ["messages[0]", "messages[1].role"]),
        ([{"role": "user", "text": "x"}], ["messages[0].text", "messages[0].content"]),
        ([{"role": "user", "content": [5, {"type": 5}]}],
         ["messages[0].content[0]", "messages[0].content[1]"]),
        ([{"role": "user", "content": [{"type": "text"}]}], ["messages[0].content[0]"]),
        (
            [{"role": "user", "content": [{"type": "text", "text": 5}]}],
            ["messages[0].content[0].text"],
        ),
        ([{"role": "user", "content": [{"type": "text", "text": object()}]}],
         ["messages[0].content[0].text"]),
    ],
)  # fmt: skip
async def test_what_is_no_message(messages, paths: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        await run_once(define_agent(name="a", model=ScriptedModel()), messages=messages)
    assert [fault.path for fault in caught.value.faults] == paths


async def test_two_of_one_id() -> None:
    message = Message("m", "user", (TextPart("x"),), "r", datetime.now(UTC))
    with pytest.raises(InvalidInput, match="same id"):
        await run_once(define_agent(name="a", model=ScriptedModel()), messages=[message, message])


@tool
def add(ctx, a: int) -> int:
    """Add."""
    return a


async def test_functions_and_a_driver_among_the_options() -> None:
    """Nothing is stored here, so they may be given."""
    model = ScriptedModel([Call("add", {"b": 1}), Call("add", {"a": 1}), "end"])
    agent = define_agent(name="a", model="demo", tools={"add": add})
    repaired: list[Any] = []

    def repair(given: Any) -> Any:
        repaired.append(given)
        return {"a": 5}

    result = await run_once(
        agent,
        "go",
        options={
            "model": model,
            "stop_when": step_limit(9) | (lambda state: state.steps >= 2),
            "repair_tool_input": repair,
            "max_steps": 5,
        },
    )
    assert result.stop_reason == "stop_when"
    assert len(model.requests) == 2
    assert len(repaired) == 1
    with pytest.raises(InvalidInput, match=r"options\.stop_when"):
        await run_once(agent, "go", options={"stop_when": lambda: True})


def test_without_an_event_loop() -> None:
    agent = define_agent(name="a", model=ScriptedModel(['{"value": 5}']))
    assert run_once_sync(agent, messages=[THREE], output=int).output == 5


async def test_an_option_nobody_knows() -> None:
    with pytest.raises(UnknownOptionError, match="thread_id: is no option of run_once"):
        await run_once(define_agent(name="a", model="demo"), "x", thread_id="t")
