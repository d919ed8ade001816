"""How an agent says that it wants titles and labels (A-TITLE-1, A-REASON-3, A-MODEL-7)."""

from __future__ import annotations

from typing import Any

import pytest

from pai import (
    ModelSelection,
    ReasoningSummaryConfig,
    SystemMessage,
    ThreadTitleConfig,
    TitleRefresh,
    define_agent,
)
from pai.definition import ObservedOutput
from pai.testing import ScriptedModel

from .refusals import refused_agent


def made(**fields: Any) -> Any:
    return define_agent(name="a", model="demo", **fields)


def test_off_by_default_and_true_is_the_default() -> None:
    """A-TITLE-1, A-REASON-1."""
    agent = made()
    assert (agent.thread_titles, agent.reasoning_summary) == (None, None)
    agent = made(thread_titles=False, reasoning_summary=False)
    assert (agent.thread_titles, agent.reasoning_summary) == (None, None)
    agent = made(thread_titles=True, reasoning_summary=True)
    assert (agent.thread_titles.generate, agent.thread_titles.model) == ("once", None)
    assert agent.reasoning_summary.generator is None


@pytest.mark.parametrize(
    ("config", "replaces"),
    [
        (ThreadTitleConfig(), {""}),
        (ThreadTitleConfig("refresh"), {"", "generated"}),
        (ThreadTitleConfig(overwrite="generated"), {"", "generated"}),
        (ThreadTitleConfig("refresh", overwrite="empty"), {""}),
        (ThreadTitleConfig(overwrite="always"), {"", "generated", "manual"}),
    ],
)
def test_what_may_be_replaced(config: ThreadTitleConfig, replaces: set[str]) -> None:
    """A-TITLE-1, A-TITLE-3."""
    assert set(made(thread_titles=config).thread_titles.replaces) == replaces


def test_all_faults_at_once() -> None:
    """A-DEF-2, A-MODEL-7."""
    wrong: Any = {
        "generate": "twice", "overwrite": "never", "refresh": 3, "model": ModelSelection("demo"),
        "instructions": [1], "generator": "x",
    }  # fmt: skip
    faults = refused_agent(
        thread_titles=ThreadTitleConfig(**wrong),
        reasoning_summary=ReasoningSummaryConfig(model="gpt", generator=lambda: None),  # type: ignore[arg-type, misc]  # wrong
    )
    assert set(faults) == {
        "thread_titles.generate",
        "thread_titles.overwrite",
        "thread_titles.refresh",
        "thread_titles.model",
        "thread_titles.instructions[0]",
        "thread_titles.generator",
        "reasoning_summary.model",
        "reasoning_summary.generator",
    }
    assert "bare" in faults["thread_titles.model"]


@pytest.mark.parametrize("given", ["yes", 1, ThreadTitleConfig, ScriptedModel(), ObservedOutput])
def test_what_is_no_config(given: object) -> None:
    """A-DEF-2."""
    assert set(refused_agent(thread_titles=given)) == {"thread_titles"}
    assert set(refused_agent(reasoning_summary=given)) == {"reasoning_summary"}


@pytest.mark.parametrize(
    ("refresh", "paths"),
    [
        (TitleRefresh(0, -1, -0.5), {"after_messages", "after_runs", "min_age"}),
        (TitleRefresh(True, 1.5, "1"), {"after_messages", "after_runs", "min_age"}),  # type: ignore[arg-type]  # wrong
        (TitleRefresh(min_age=float("nan")), {"min_age"}),
        (TitleRefresh(1, 1, 0), set()),
    ],
)
def test_thresholds_are_numbers(refresh: TitleRefresh, paths: set[str]) -> None:
    """A-TITLE-1."""
    config = ThreadTitleConfig("refresh", refresh)
    if not paths:
        assert made(thread_titles=config)
        return
    faults = refused_agent(thread_titles=config)
    assert set(faults) == {f"thread_titles.refresh.{path}" for path in paths}


def test_thresholds_without_refresh_do_nothing() -> None:
    """A-TITLE-1: said, not ignored."""
    faults = refused_agent(thread_titles=ThreadTitleConfig(refresh=TitleRefresh(1)))
    assert "generate='refresh'" in faults["thread_titles.refresh"]


def test_instructions_are_those_of_agents() -> None:
    """A-TITLE-1, A-REASON-3."""
    for instructions in ("x", SystemMessage("x"), [SystemMessage("x")], lambda given: "x"):
        titles = ThreadTitleConfig(model="openai:gpt-5.2", instructions=instructions)
        summaries = ReasoningSummaryConfig(model=lambda given: "demo", instructions=instructions)
        assert made(thread_titles=titles, reasoning_summary=summaries)
