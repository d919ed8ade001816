"""What can be said to the plugin, and how it is installed."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest
from pai_compaction import Options, clear_tool_outputs, compaction, plugin, summarise, window

from pai import DefinitionError, compose_lifecycle, create_pai, define_agent
from pai.testing import ScriptedModel


def faults(error: pytest.ExceptionInfo[DefinitionError]) -> list[str]:
    return [str(fault) for fault in error.value.faults]


def test_all_faults_are_told_at_once():
    with pytest.raises(DefinitionError) as error:
        compaction(0, target=-1, strategies=["window"])  # type: ignore[list-item]
    assert faults(error) == [
        "max_tokens: expected a whole number from 1",
        "target: expected a whole number from 1",
        "strategies[0]: is no strategy: it needs name and apply(work)",
    ]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: compaction(target=5), "target: needs max_tokens"),
        (lambda: compaction(5, target=6), "target: is above max_tokens, 5"),
        (lambda: compaction(True), "max_tokens: expected a whole number from 1"),
        (lambda: compaction(strategies=()), "strategies: expected some, in a sequence"),
        (lambda: compaction(tokenizer="klingon"), "there is no encoding 'klingon'"),
        (lambda: compaction(tokenizer=5), "tokenizer: expected None, the name"),
        (lambda: clear_tool_outputs(0), "keep: expected a whole number from 1"),
        (lambda: clear_tool_outputs(exclude="look"), "exclude: expected a collection of names"),
        (lambda: clear_tool_outputs(placeholder=""), "placeholder: expected a text"),
        (lambda: summarise(0), "keep: expected a whole number from 1"),
        (lambda: summarise(max_tokens=1), "max_tokens: expected a whole number from 50"),
        (lambda: summarise(model=5), "model: expected a name or a driver"),
        (lambda: summarise(settings={}), "settings: expected ModelSettings"),
        (lambda: window(0), "keep: expected a whole number from 1"),
        (
            lambda: compaction(
                strategies=[clear_tool_outputs(), clear_tool_outputs(exclude={"look"})]
            ),
            "must agree on exclude= and placeholder=",
        ),
    ],
)
def test_an_option_that_does_not_fit_is_refused(make, told):
    with pytest.raises(DefinitionError) as error:
        make()
    assert told in str(error.value)


def test_it_is_installed_and_works_without_options():
    [entry] = entry_points(group="pai", name="compaction")
    assert entry.load() is plugin
    assert plugin.Options is Options
    made = plugin.register_lifecycle(Options())
    assert compose_lifecycle(made).plugins == (made,)


def test_options_of_the_installation_reach_it():
    made = plugin.register_lifecycle(Options(900, keep_turns=4, summary=False))
    assert made._setup.budget.limit == 900
    assert [each.name for each in made._setup.strategies] == ["clear_tool_outputs", "window"]


@pytest.mark.anyio
async def test_a_runtime_loads_it_by_name():
    model = ScriptedModel(["One.", "Two."])
    agent = define_agent(name="a", model=model)
    given = [{"compaction": {"max_tokens": 30, "summary": False}}]
    async with create_pai(agents={"main": agent}, plugins=given, strict=True) as app:
        thread = app.thread("main", thread_id="t")
        for text in ("x" * 70, "y" * 70):
            await (await thread.send(text)).result()
    assert [message.text for message in model.requests[1].messages] == ["y" * 70]
