"""Declaring a fallback, in code and in a configuration file."""

from __future__ import annotations

from typing import Any

import pytest
from pai_fallback import Fallback, Options, Target, fallback
from pai_fallback.plugin import register_lifecycle

from pai import DefinitionError, RateLimited, define_agent, run_once_sync
from pai.schema import compile_schema
from pai.testing import Fail, ScriptedModel

LIMITED = Fail(RateLimited("slow down", provider="scripted"))


def faults(*models: Any, **options: Any) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        fallback(*models, **options)
    return [fault.path for fault in caught.value.faults]


def test_all_mistakes_are_told_at_once() -> None:
    assert faults() == ["models"]
    assert faults(
        "nobody:x",
        Target(ScriptedModel(), instructions=3),  # type: ignore[arg-type]  # the mistake
        on=[None, ValueError],
        first=0,
        record="secret.x",
    ) == ["models[0]", "models[1].instructions", "on[0]", "on[1]", "first", "record"]
    assert faults("demo", instructions={"openai": "x"}) == ["instructions.openai"]


def test_without_models_it_stands_aside() -> None:
    """A-LIFE-5"""
    assert register_lifecycle(compile_schema(Options).parse({})) is None
    assert register_lifecycle(None) is None


def test_the_options_of_a_file_make_the_plugin() -> None:
    options = compile_schema(Options).parse(
        {"models": ["demo"], "on": ["rate_limited", 503], "first": 5, "record": "public.models"}
    )
    plugin = register_lifecycle(options)
    assert isinstance(plugin, Fallback)
    [link] = plugin.chain.links
    assert (link.name, plugin.chain.first, plugin.sticky) == ("demo", 5.0, True)
    agent = define_agent(name="a", model=ScriptedModel([LIMITED]), lifecycle=plugin)
    assert run_once_sync(agent, "Hello").status == "completed"
