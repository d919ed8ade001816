"""Settings, reasoning, prompt cache and provider options, on captured bodies."""

from __future__ import annotations

from typing import Any

import pytest

from pai.models import OpenAIChat, OpenAIResponses
from pai.ports import ModelDriver
from pai.protocol import (
    ModelSettings,
    PromptCache,
    Reasoning,
    SystemMessage,
)

from .edge_server import EdgeServer
from .sent import own, sent
from .told import ADD

BOTH = pytest.mark.parametrize("cls", [OpenAIChat, OpenAIResponses])

SETTINGS = ModelSettings(
    max_output_tokens=100,
    temperature=0.5,
    top_p=0.9,
    top_k=7,
    presence_penalty=0.1,
    frequency_penalty=0.2,
    stop_sequences=("END",),
    seed=3,
)


@pytest.mark.anyio
async def test_chat_settings(edge: EdgeServer) -> None:
    body = await sent(OpenAIChat, edge, settings=SETTINGS)
    common = {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "top_p": 0.9,
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "stop": ["END"],
        "seed": 3,
    }
    hi = [{"role": "user", "content": "hi"}]
    assert body == {**common, "max_tokens": 100, "top_k": 7, "messages": hi}
    body = own(OpenAIChat("m"), settings=SETTINGS)
    assert body == {**common, "max_completion_tokens": 100, "messages": hi}


@pytest.mark.anyio
async def test_responses_settings(edge: EdgeServer) -> None:
    body = await sent(OpenAIResponses, edge, settings=SETTINGS)
    assert body == {
        "model": "m",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "max_output_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "input": [{"role": "user", "content": "hi"}],
    }


@pytest.mark.anyio
@BOTH
async def test_absent_sends_nothing(cls, edge: EdgeServer) -> None:
    """O-26; and metadata never is on the wire (O-9)."""
    body = await sent(cls, edge, metadata={"user": "somebody"})
    kept = {"model", "stream", "stream_options", "messages", "store", "include", "input"}
    assert set(body) <= kept
    assert b"somebody" not in edge.requests[-1].body
    assert "somebody" not in str(edge.requests[-1].headers)


@BOTH
@pytest.mark.parametrize(
    ("model", "level", "effort"),
    [
        ("gpt-5.2", "high", "high"),
        ("gpt-5.2", "minimal", "low"),
        ("gpt-5.2", "none", "none"),
        ("gpt-5", "none", "minimal"),
        ("gpt-5", "xhigh", "high"),
        ("gpt-5-pro", "low", "high"),
        ("o3", "minimal", "low"),
        ("openai/gpt-oss-20b", "xhigh", "high"),
        ("something-else", "xhigh", "xhigh"),
        ("gpt-4o", "high", None),
    ],
)
def test_reasoning_is_clamped(cls, model: str, level: Any, effort: str | None) -> None:
    """O-13: exact, else the nearest above, else the nearest below."""
    body = own(cls(model), settings=ModelSettings(reasoning=level))
    if cls is OpenAIChat:
        assert body.get("reasoning_effort") == effort
    else:
        summary = {} if effort == "none" else {"summary": "auto"}
        assert body.get("reasoning") == (effort and {"effort": effort, **summary})
        # The service refuses the request of a model that has no reasoning to give back.
        assert ("include" in body) == (effort is not None)


def test_reasoning_without_summary() -> None:
    wish = ModelSettings(reasoning=Reasoning("low", summary=False, budget_tokens=100))
    assert own(OpenAIResponses("gpt-5"), settings=wish)["reasoning"] == {"effort": "low"}


@BOTH
@pytest.mark.parametrize(
    ("model", "cache", "fields"),
    [
        ("gpt-5.2", PromptCache("short", "k"), {"prompt_cache_retention": "in_memory"}),
        ("gpt-5.2", PromptCache("long", "k"), {"prompt_cache_retention": "24h"}),
        ("gpt-5.6", PromptCache("short", "k"), {}),
        ("gpt-5.6", PromptCache("long", "k"), {"prompt_cache_retention": "24h"}),
        ("gpt-4o", PromptCache("long", "k"), {}),
        ("gpt-5.2", PromptCache("none", "k"), None),
        ("gpt-5.2", None, None),
    ],
)
def test_prompt_cache(cls, model: str, cache: PromptCache | None, fields: Any) -> None:
    body = own(cls(model), prompt_cache=cache)
    found = {name: value for name, value in body.items() if name.startswith("prompt_cache")}
    assert found == ({} if fields is None else {"prompt_cache_key": "k", **fields})


@pytest.mark.anyio
@BOTH
async def test_prompt_cache_stays_at_home(cls, edge: EdgeServer) -> None:
    """O-12: nothing of it goes to a foreign host."""
    await sent(cls, edge, prompt_cache=PromptCache("long", "k"))
    assert b"prompt_cache" not in edge.requests[-1].body


def test_long_cache_keys_are_cut() -> None:
    body = own(OpenAIChat("gpt-5"), prompt_cache=PromptCache("short", "k" * 100))
    assert body["prompt_cache_key"] == "k" * 64


@pytest.mark.anyio
@BOTH
async def test_provider_options_win(cls, edge: EdgeServer) -> None:
    """They come last, objects one level deep; those of others do no harm (A-MODEL-3, O-25)."""
    options = {
        "openai": {
            "temperature": 0.1,
            "tool_choice": "none",
            "stream": False,
            "service_tier": "flex",
            "text": {"verbosity": "low"},
            "store": True,
        },
        "other": {"temperature": 0.9},
    }
    body = await sent(
        cls,
        edge,
        tools=(ADD,),
        tool_choice="required",
        output={"type": "object"},
        settings=ModelSettings(temperature=1.0),
        provider_options=options,
    )
    assert body["temperature"] == 0.1
    assert body["tool_choice"] == "none"
    assert body["service_tier"] == "flex"
    assert body["stream"] is True
    if cls is OpenAIResponses:
        assert body["text"]["verbosity"] == "low"
        assert body["text"]["format"]["type"] == "json_schema"
        assert body["store"] is True
        assert "include" not in body


@pytest.mark.anyio
@BOTH
async def test_raw_fields_replace_ours(cls, edge: EdgeServer) -> None:
    """Each key is there once, also where the caller writes what we would."""
    raw = {"messages": [], "input": [], "tools": [], "instructions": "Mine."}
    body = await sent(
        cls,
        edge,
        tools=(ADD,),
        instructions=(SystemMessage("Ours."),),
        provider_options={"openai": raw},
    )
    assert {name: body[name] for name in raw} == raw
    assert edge.requests[-1].body.count(b'"tools"') == 1
    assert b"Ours." not in edge.requests[-1].body


@BOTH
def test_profile(cls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    driver: ModelDriver = cls("gpt-5.2")
    assert isinstance(driver, ModelDriver)
    assert (driver.provider, driver.name) == ("openai", "gpt-5.2")
    assert driver.profile.combined_output
    assert driver.profile.reasoning == ("none", "low", "medium", "high", "xhigh")
    assert not cls("m", base_url="http://localhost:1/v1").profile.combined_output
    assert cls("m").profile.reasoning == ()
