"""All first-party plugins together: every order composes and answers, and the order has effects."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai import ContextOverflow, create_pai, define_agent, run_once, tool
from pai.lifecycle import Chains, compose_lifecycle, load_plugins
from pai.testing import Call, Cut, Fail, ScriptedModel

pai_compaction = pytest.importorskip("pai_compaction")
pai_fallback = pytest.importorskip("pai_fallback")
pai_prompt_cache = pytest.importorskip("pai_prompt_cache")
pai_rag = pytest.importorskip("pai_rag")
pai_redaction = pytest.importorskip("pai_redaction")

NAMES = ("compaction", "fallback", "prompt-cache", "rag", "redaction")
SECRET = "ada@example.org"


@pytest.fixture
def index(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'rag.db'}"
    with pai_rag.Index(url) as opened:
        opened.open()
        opened.add(
            [pai_rag.Record("office", "The office of Ada is in Hamburg.")], partition="default"
        )
    return url


@pytest.fixture
def make(index: str) -> dict[str, Callable[[], object]]:
    return {
        "compaction": pai_compaction.compaction,
        "fallback": lambda: pai_fallback.fallback(ScriptedModel(lambda _: f"write to {SECRET}")),
        "prompt-cache": pai_prompt_cache.prompt_cache,
        "rag": lambda: pai_rag.rag(index),
        "redaction": pai_redaction.redaction,
    }


@pytest.mark.anyio
async def test_every_order_composes_and_answers(
    make: dict[str, Callable[[], object]], anyio_backend: str
) -> None:
    orders = list(itertools.permutations(NAMES))
    if anyio_backend == "trio":
        orders = orders[::10]  # the composition is the same; the loop is what differs
    for order in orders:
        model = ScriptedModel([["Half of ", Cut()]])
        agent = define_agent(
            name="a", model=model, lifecycle=compose_lifecycle(*(make[name]() for name in order))
        )
        result = await run_once(agent, "Where is the office of Ada?")
        assert result.status == "completed", (order, result)
        assert "write to" in result.text
        assert SECRET not in result.text, order


@pytest.mark.anyio
async def test_redaction_has_the_last_word_wherever_it_is_named(
    make: dict[str, Callable[[], object]],
) -> None:
    """A-LIFE-6: also over what another plugin's transform writes."""
    for order in itertools.permutations(("redaction", "rag", "fallback")):
        lifecycle = compose_lifecycle(*(make[name]() for name in order))
        assert Chains(lifecycle).transform_step_stream[-1].plugin == "redaction", order


@pytest.mark.anyio
async def test_a_fallback_left_of_compaction_sees_its_last_overflow(
    make: dict[str, Callable[[], object]],
) -> None:
    """The leftmost is outermost: what compaction cannot mend, the next model answers."""
    overflow = ContextOverflow("too long", provider="scripted")
    model = ScriptedModel(lambda _: [Fail(overflow)])
    agent = define_agent(
        name="a",
        model=model,
        lifecycle=compose_lifecycle(make["fallback"](), make["compaction"]()),
    )
    result = await run_once(agent, "hello")
    assert result.status == "completed"
    assert "write to" in result.text


@pytest.mark.anyio
async def test_a_secret_does_not_reach_the_next_model(
    make: dict[str, Callable[[], object]],
) -> None:
    """What redaction removed from the user's message no target of a fallback sees."""
    seen: list[Any] = []

    def target(request: Any) -> str:
        seen.append("".join(message.text for message in request.messages))
        return "ok"

    agent = define_agent(
        name="a",
        model=ScriptedModel([[Cut()]]),
        lifecycle=compose_lifecycle(
            pai_redaction.redaction(), pai_fallback.fallback(ScriptedModel(target))
        ),
    )
    assert (await run_once(agent, f"write to {SECRET}")).text == "ok"
    assert len(seen) == 1
    assert SECRET not in seen[0]


@pytest.mark.anyio
async def test_installed_without_options_they_work_or_stand_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loaded = load_plugins(list(NAMES))
    states = {report.name: report.state for report in loaded.reports}
    assert states == {
        "compaction": "loaded",
        "fallback": "aside",  # it has no models
        "prompt-cache": "loaded",
        "rag": "aside",  # there is no index
        "redaction": "loaded",
    }

    @tool
    def shout(ctx: Any, text: str) -> str:
        """Say it louder."""
        return text.upper()

    model = ScriptedModel([[Call("shout", {"text": SECRET})], f"I told {SECRET}."])
    agent = define_agent(name="a", model=model, tools={"shout": shout})
    async with create_pai(agents={"main": agent}, plugins=list(NAMES)) as app:
        result = await (await app.thread("main").send("go")).result()
    assert result.status == "completed"
    assert SECRET not in result.text


def test_with_all_of_them_the_script_still_answers(tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "pai", "chat", "What is 2 + 3?"],
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path), "PAI_PLUGINS": ",".join(NAMES)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "2 + 3 = 5" in answer.stdout
