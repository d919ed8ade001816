"""What of each option is in the provider's request, and what is not: on both OpenAI drivers."""

from __future__ import annotations

from typing import Any

import pytest

from pai import (
    FirstStep,
    LazyTools,
    ModelSelection,
    ModelSettings,
    PromptCache,
    Reasoning,
    Retry,
    RunOptions,
    ToolName,
    budget,
    define_agent,
    step_limit,
    tool,
)
from pai.models import OpenAIChat, OpenAIResponses

from ..aimock import Aimock
from ..models.edge_server import refusal
from ..played import play
from .double import FOREIGN, OWN, Cls, Double, adding, saying

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("cls", [OpenAIChat, OpenAIResponses])

# What a request has that nobody asked for anything.
PLAIN = {
    OpenAIChat: {"model", "messages", "stream", "stream_options", "tools"},
    OpenAIResponses: {"model", "input", "stream", "store", "include", "tools"},
}


@tool
def add(ctx: Any, a: int, b: int | None = None) -> int:
    """Add."""
    return a + (b or 0)


@tool(lazy=True)
def ship(ctx: Any) -> str:
    """Ship the order. It leaves at once."""
    return "shipped"


async def bodies(cls: Cls, *replies: Any, **given: Any) -> list[dict[str, Any]]:
    """The bodies of a run's requests; it calls `add` once and then says `ab`."""
    double = Double(replies or (adding(cls), saying(cls)))
    options, plugins = given.pop("options", None), given.pop("plugins", ())
    url = given.pop("url", OWN)
    given.setdefault("tools", {"add": add})
    given.setdefault("model", cls("gpt-5.2", base_url=url, api_key="k"))
    definition = define_agent(name="a", wrap_transport=double.wrap, **given)
    played = await play(definition, options=options, plugins=plugins)
    assert played.errors == []
    return double.bodies


@BOTH
@pytest.mark.parametrize("url", [OWN, FOREIGN])
async def test_nothing_is_sent_that_nobody_asked_for(cls: Cls, url: str) -> None:
    """O-26: nor what is the loop's own business."""
    assert [set(body) for body in await bodies(cls, url=url)] == [PLAIN[cls]] * 2
    ours = {
        "stop_when": step_limit(5) | budget(tokens=10**9),
        "max_steps": 4,
        "tool_execution": "sequential",
        "max_parallel_tools": 2,
        "retry": Retry(1),
        "repair_tool_input": False,
        "lazy_tools": LazyTools("full"),
    }
    assert [set(body) for body in await bodies(cls, url=url, **ours)] == [PLAIN[cls]] * 2
    options = RunOptions(state={"marker": "m-91"}, parent_run_id="m-92", **ours)  # type: ignore[arg-type]  # as given
    for body in await bodies(cls, url=url, options=options):
        assert set(body) == PLAIN[cls]
        assert "m-9" not in str(body)


def named(cls: Cls, name: str) -> Any:
    if cls is OpenAIChat:
        return {"type": "function", "function": {"name": name}}
    return {"type": "function", "name": name}


@BOTH
async def test_tool_choice(cls: Cls) -> None:
    """O-21"""

    async def choices(choice: Any, **given: Any) -> list[Any]:
        sent = await bodies(cls, tool_choice=choice, **given)
        return [body.get("tool_choice", "absent") for body in sent]

    assert await choices("auto") == ["auto", "auto"]
    assert await choices("none") == ["none", "none"]
    assert await choices("required") == ["required", "absent"]
    assert await choices(ToolName("add")) == [named(cls, "add"), "absent"]
    assert await choices(FirstStep("auto", then=ToolName("add"))) == ["auto", named(cls, "add")]
    off = RunOptions(tool_choice="none")
    assert await choices("required", options=off) == ["none", "none"]


@BOTH
async def test_no_tool_choice_without_tools(cls: Cls) -> None:
    """O-21"""
    for body in await bodies(cls, saying(cls), tools={}, tool_choice="required"):
        assert set(body) == PLAIN[cls] - {"tools"}


@BOTH
async def test_prompt_cache(cls: Cls) -> None:
    """O-12: the key is the thread's, without telling its id; nothing goes to a foreign host."""
    for fields in (
        {"prompt_cache": "long"},
        {"prompt_cache": "none", "options": RunOptions(prompt_cache="long")},
    ):
        first, second = await bodies(cls, **fields)
        assert first["prompt_cache_retention"] == "24h"
        assert first["prompt_cache_key"] == second["prompt_cache_key"]
        assert len(first["prompt_cache_key"]) == 32
    own_key = PromptCache("short", "mine")
    for body in await bodies(cls, prompt_cache=own_key):
        assert (body["prompt_cache_key"], body["prompt_cache_retention"]) == ("mine", "in_memory")
    for fields in ({"prompt_cache": "none"}, {"prompt_cache": "long", "url": FOREIGN}):
        assert [set(body) for body in await bodies(cls, **fields)] == [PLAIN[cls]] * 2


@BOTH
@pytest.mark.parametrize(
    ("level", "sent"), [("minimal", "low"), ("high", "high"), ("none", "none"), ("xhigh", "xhigh")]
)
async def test_reasoning(cls: Cls, level: Any, sent: str) -> None:
    """O-13: clamped to what the model offers, in each request."""
    options = RunOptions(model_settings=ModelSettings(reasoning=Reasoning(level)))
    for body in await bodies(cls, options=options):
        found = body["reasoning_effort"] if cls is OpenAIChat else body["reasoning"]["effort"]
        assert found == sent


@BOTH
async def test_model_settings_and_provider_options(cls: Cls) -> None:
    """The options of a call replace the agent's whole; others' entries are not sent."""
    model = ModelSelection(
        cls("gpt-5.2", base_url=OWN, api_key="k"),
        ModelSettings(temperature=0.1, top_p=0.2),
        {"openai": {"user": "agent"}},
    )
    for body in await bodies(cls, model=model):
        assert (body["temperature"], body["top_p"], body["user"]) == (0.1, 0.2, "agent")
    options = RunOptions(
        model_settings=ModelSettings(temperature=0.9),
        provider_options={"openai": {"service_tier": "flex"}, "other": {"user": "x"}},
    )
    for body in await bodies(cls, model=model, options=options):
        assert set(body) == PLAIN[cls] | {"temperature", "service_tier"}
        assert body["temperature"] == 0.9


@BOTH
async def test_the_run_records_what_provider_options_win_over(cls: Cls) -> None:
    """O-25: they win, and each step says over what."""
    double = Double((adding(cls), saying(cls)))
    own: dict[str, Any] = {"reasoning": {"effort": "low"}}
    if cls is OpenAIChat:
        own = {"reasoning_effort": "low"}
    definition = define_agent(
        name="a", wrap_transport=double.wrap, tools={"add": add}, tool_choice="required",
        prompt_cache="long",
        model=ModelSelection(
            cls("gpt-5.2", base_url=OWN, api_key="k"),
            ModelSettings(reasoning="high"),
            {"openai": {"tool_choice": "auto", "prompt_cache_key": "raw", **own}},
        ),
    )  # fmt: skip
    played = await play(definition)
    for body in double.bodies:
        assert (body["tool_choice"], body["prompt_cache_key"]) == ("auto", "raw")
        found = body["reasoning_effort"] if cls is OpenAIChat else body["reasoning"]["effort"]
        assert found == "low"
    finished = played.of("step-finished")
    assert [event.overridden for event in finished] == [
        ["tool_choice", "reasoning", "prompt_cache"],
        # Here nothing was asked for a tool.
        ["reasoning", "prompt_cache"],
    ]
    plain = await play(
        define_agent(
            name="a", wrap_transport=Double((saying(cls),)).wrap, tool_choice="required",
            tools={"add": add},
            model=ModelSelection(
                cls("gpt-5.2", base_url=OWN, api_key="k"),
                provider_options={"openai": {"user": "u"}, "other": {"tool_choice": "none"}},
            ),
        )
    )  # fmt: skip
    assert [event.overridden for event in plain.of("step-finished")] == [None]


@BOTH
async def test_a_retry_sends_the_same_again(cls: Cls) -> None:
    """O-17: the client's own retries are off, ours are the only ones."""
    busy = refusal(429, {"error": {"message": "slow"}}, retry_after="0")
    sent = await bodies(cls, busy, busy, saying(cls))
    assert len(sent) == 3
    assert sent[0] == sent[1] == sent[2]


@BOTH
async def test_what_was_mended_is_what_goes_back(cls: Cls) -> None:
    """O-14"""
    _, second = await bodies(cls, adding(cls, '{"a": "1", "b": ""}'), saying(cls))
    items = second["messages" if cls is OpenAIChat else "input"]
    call = items[1]["tool_calls"][0]["function"] if cls is OpenAIChat else items[1]
    assert call["arguments"] == '{"a":1,"b":null}'


@BOTH
async def test_lazy_tools(cls: Cls) -> None:
    """O-6: what is not discovered is not sent."""
    (body,) = await bodies(
        cls, saying(cls), tools={"add": add, "ship": ship}, lazy_tools=LazyTools("first-sentence")
    )
    tools = [item.get("function", item) for item in body["tools"]]
    assert [item["name"] for item in tools] == ["add", "__lazy__tool__discovery__"]
    assert tools[1]["description"].endswith("\n- ship: Ship the order.")
    assert tools[1]["strict"] is True


@BOTH
async def test_a_real_server_takes_it(cls: Cls, aimock: Aimock) -> None:
    """O-21, O-6: a first step that must call, and one that answers."""
    aimock.load(
        [
            {
                "match": {"userMessage": "go", "sequenceIndex": 0},
                "response": {"toolCalls": [{"name": "add", "arguments": '{"a":"1"}'}]},
            },
            {"match": {"userMessage": "go", "sequenceIndex": 1}, "response": {"content": "done"}},
        ]
    )
    definition = define_agent(
        name="a", model=cls("gpt-5.2", base_url=aimock.url, api_key="k"),
        tools={"add": add, "ship": ship}, tool_choice="required", prompt_cache="long",
        stop_when=step_limit(5), retry=Retry(1),
    )  # fmt: skip
    played = await play(definition)
    assert played.result.text == "done"
    first, second = [entry["body"] for entry in aimock.journal()]
    assert first["tool_choice"] == "required"
    assert "tool_choice" not in second
    names = [item["function"]["name"] for item in first["tools"]]
    assert names == ["add", "__lazy__tool__discovery__"]
    assert "prompt_cache" not in str(aimock.journal())
