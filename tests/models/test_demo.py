"""The demo: what a first run and the docs lean on."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from pai.models import resolve_model
from pai.models._demo.sums import read_sum
from pai.models._demo.tools import fill, named_calls
from pai.ports import ModelRequest
from pai.protocol import (
    DataPart,
    Message,
    SourcePart,
    SystemMessage,
    TextDelta,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolName,
    ToolSpec,
)
from pai.testing._driver_kit import Situation, check_model_driver, check_stream

from .told import ADD, assistant, kept, listen, request, told, user

DEMO: Any = resolve_model("demo")


def tool(name: str, description: str = "", **fields: str | dict[str, Any]) -> ToolSpec:
    properties = {
        key: {"type": field} if isinstance(field, str) else field for key, field in fields.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return ToolSpec(name, description, schema)  # type: ignore[arg-type]


MULTIPLY = tool("multiply", x="number", y="number")
MINUS = tool("calc_minus", a="integer", b="integer")
TIME = tool("get_time")
WEATHER = tool("get_weather", city="string", days="integer")


async def ask(*messages: Message | str, **fields: Any) -> dict[str, Any]:
    given = [user(each) if isinstance(each, str) else each for each in messages]
    said = told(await listen(DEMO, request(DEMO, *given, **fields)))
    assert said.pop("usage")[0] > 0
    return said


async def run(question: str, tools: tuple[ToolSpec, ...], **outputs: Any) -> tuple[list[Any], str]:
    """All calls until the answer, as a loop would make them, and the answer."""
    messages = [user(question)]
    calls: list[Any] = []
    while True:
        parts = await listen(DEMO, ModelRequest(DEMO, messages, tools=tools))
        check_stream(parts)
        made = [part for part in parts if isinstance(part, ToolCall)]
        if not made:
            return calls, "".join(part.text for part in parts if isinstance(part, TextDelta))
        calls += [(call.tool, call.input) for call in made]
        results = {}
        for call in made:
            output = outputs[call.tool]
            results[call.tool] = output(**cast("Any", call.input)) if callable(output) else output
        messages.append(kept(parts, results))


@pytest.mark.anyio
async def test_the_first_program() -> None:
    assert await ask("What is 2 + 3?", tools=(ADD,)) == {
        "text": ["Let me add that up."],
        "calls": [("add", {"a": 2, "b": 3})],
        "reason": "tool-calls",
    }
    done = ToolCallPart("1", "add", {"a": 2, "b": 3}, "completed", 5)
    assert await ask("What is 2 + 3?", assistant(done), tools=(ADD,)) == {
        "text": ["2 + 3 = 5"],
        "reason": "stop",
    }
    again = (user("What is 2 + 3?"), assistant(done), assistant("2 + 3 = 5"))
    assert await ask(*again, "What did I ask before?", tools=(ADD,)) == {
        "text": ['You asked before: "What is 2 + 3?"'],
        "reason": "stop",
    }


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is 2 + 3?", "2 + 3 = 5"),
        ("add 2 and 3", "2 + 3 = 5"),
        ("Please add the numbers 1, 2, 3 and 4.", "1 + 2 + 3 + 4 = 10"),
        ("2+3*4", "2 + 3 * 4 = 14"),
        ("7 minus 2 plus 1?", "7 - 2 + 1 = 6"),
        ("multiply 6 by 7", "6 * 7 = 42"),
        ("subtract 2 from 9", "9 - 2 = 7"),
        ("1.5 + 2", "1.5 + 2 = 3.5"),
        ("-2 + 5", "-2 + 5 = 3"),
    ],
)
async def test_sums(question: str, answer: str) -> None:
    """Each operation is a call of its own, one a step."""
    tools = (tool("add", a="number", b="number"), MULTIPLY, MINUS)
    made = {
        "add": lambda a, b: a + b,
        "multiply": lambda x, y: {"result": x * y},
        "calc_minus": lambda a, b: str(a - b),
    }
    calls, said = await run(question, tools, **made)
    assert said == answer
    assert len(calls) == sum(answer.partition("=")[0].count(f" {sign} ") for sign in "+-*")


@given(st.lists(st.integers(-999, 999), min_size=2, max_size=4), st.data())
def test_any_sum(numbers: list[int], data: st.DataObject) -> None:
    signs = data.draw(
        st.lists(st.sampled_from("+-*"), min_size=len(numbers) - 1, max_size=len(numbers) - 1)
    )
    written = str(numbers[0]) + "".join(
        f" {s} {n}" for s, n in zip(signs, numbers[1:], strict=True)
    )
    found = read_sum(f"What is {written}?")
    assert found is not None
    assert found.text == written
    assert found.value() == eval(written)


@pytest.mark.parametrize(
    "text", ["", "Hello", "on 2026-11-30", "version 1.2.3", "add a note", "a-1"]
)
def test_no_sum(text: str) -> None:
    assert read_sum(text) is None or "2026" in text


@pytest.mark.anyio
async def test_no_tool_for_it() -> None:
    said = await ask("What is 2 + 3?")
    assert said == {"text": ["2 + 3 = 5 (worked out without a tool)"], "reason": "stop"}
    said = await ask("What is 1 / 0?")
    assert "undefined" in said["text"][0]
    area = tool("area", width="integer", height="integer")
    assert "calls" not in await ask("What is 2 + 3?", tools=(area,))
    assert "calls" not in await ask("What is 2 + 3?", tools=(ADD,), tool_choice="none")


@pytest.mark.anyio
async def test_a_failed_call() -> None:
    """It says so, and does not call again."""
    denied = ToolCallPart("1", "add", {"a": 2, "b": 3}, "denied", error="not today")
    said = await ask("What is 2 + 3?", assistant(denied), tools=(ADD,))
    assert said == {"text": ["add gave no result: not today"], "reason": "stop"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "calls"),
    [
        ("get_time", [("get_time", {})]),
        ("What does get time say?", [("get_time", {})]),
        (
            "use get_weather city=Paris days=3",
            [("get_weather", {"city": "Paris", "days": 3})],
        ),
        (
            'Call get_weather with city: "New York", days: 2.',
            [("get_weather", {"city": "New York", "days": 2})],
        ),
        ("get_weather for Paris 3", [("get_weather", {"city": "Paris", "days": 3})]),
        (
            "get_time and then get_weather Rome 1",
            [("get_time", {}), ("get_weather", {"city": "Rome", "days": 1})],
        ),
    ],
)
async def test_a_named_tool(question: str, calls: list[Any]) -> None:
    said = await ask(question, tools=(TIME, WEATHER))
    assert said["calls"] == calls


@pytest.mark.anyio
async def test_what_the_tools_said() -> None:
    calls, said = await run(
        "get_time, get_weather Rome 1", (TIME, WEATHER), get_time="noon", get_weather={"t": 9}
    )
    assert len(calls) == 2
    assert said == 'get_time says: noon get_weather says: {"t":9}'


@pytest.mark.anyio
async def test_a_missing_value() -> None:
    said = await ask("use get_weather city=Paris", tools=(WEATHER,))
    assert said["text"] == ["get_weather needs days: say get_weather days=..."]


def test_values_fit_their_types() -> None:
    fields: dict[str, Any] = {
        "on": "boolean",
        "kind": {"enum": ["Big", "small"]},
        "n": {"anyOf": [{"type": "null"}, {"type": "number"}]},
    }
    calls, _ = named_calls("set on=yes kind=big n=2.5", [tool("set", **fields)])
    assert calls[0].input == {"on": True, "kind": "Big", "n": 2.5}
    assert named_calls("set on=perhaps kind=big n=1", [tool("set", **fields)])[1]


@pytest.mark.anyio
async def test_memory() -> None:
    history = (user("One?"), assistant("1"), user("Two?"), assistant("2"))
    for question, answer in (
        ("What did I ask before?", 'You asked before: "One?", then "Two?"'),
        ("What was my last question?", 'You asked before: "Two?"'),
        ("what was my first question?", 'Your first message was: "One?"'),
    ):
        assert (await ask(*history, question))["text"] == [answer]
    said = await ask("What did I ask before?")
    assert said["text"] == ["Nothing: this is your first message in this conversation."]


DOCUMENT = (
    "The office in Bern opens at nine. Dogs are welcome in the garden.\n"
    "The office in Rome is closed on Mondays."
)


@pytest.mark.anyio
async def test_retrieved_context() -> None:
    """From later instructions, from data parts, and from texts that come with their sources."""
    question = "When does the office in Bern open?"
    expected = 'From what I was given: "The office in Bern opens at nine."'
    instructions = (SystemMessage("Be kind."), SystemMessage(DOCUMENT))
    sourced = user(question, TextPart(DOCUMENT), SourcePart("s0", title="Offices"))
    data = user(question, DataPart("context", {"hits": [{"text": DOCUMENT}]}))
    assert (await ask(question, instructions=instructions))["text"] == [expected]
    assert (await ask(sourced))["text"] == [expected]
    assert (await ask(data))["text"] == [expected]
    said = await ask("Who won the cup?", instructions=instructions)
    assert "demo model" in said["text"][0]


@pytest.mark.anyio
async def test_it_says_what_it_is() -> None:
    said = await ask("Hello", tools=(TIME,))
    assert "offline demo model" in said["text"][0]
    assert "get_time" in said["text"][0]
    assert await ask("Hello", tools=(TIME,)) == said, "always the same"


@pytest.mark.anyio
async def test_a_demanded_call() -> None:
    said = await ask("Hello 4", tools=(TIME, WEATHER), tool_choice=ToolName("get_weather"))
    assert said["calls"] == [("get_weather", {"city": "Hello 4", "days": 4})]
    said = await ask("Hello", tools=(TIME, WEATHER), tool_choice="required")
    assert said["calls"] == [("get_time", {})]


@pytest.mark.anyio
async def test_structured_output() -> None:
    from pai.schema import parse_json

    schema = {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "count": {"type": "integer"},
            "kind": {"enum": ["a", "b"]},
            "rest": {"$ref": "#/$defs/Rest"},
        },
        "required": ["title", "count", "kind", "rest"],
        "$defs": {"Rest": {"type": "array", "items": {"type": "number"}, "minItems": 1}},
    }
    said = await ask("Give me 7", output=schema)
    expected = {"title": "Give me 7", "count": 7, "kind": "a", "rest": [0]}
    assert parse_json(said["text"][0]) == expected
    assert fill({"type": "boolean"}, "") is False


@pytest.mark.anyio
async def test_words_come_in_small_lists() -> None:
    items = [item async for item in DEMO.stream(request(DEMO, user("Hello")))]
    assert all(isinstance(item, list) and len(item) <= 4 for item in items)
    assert len(items) > 5


@pytest.mark.anyio
async def test_driver_kit() -> None:
    """The kit takes a driver without a wire as well."""
    await check_model_driver(lambda _: DEMO, situations=[Situation.CALL])
