"""Composition: what is refused, and in which order the rest runs."""

from __future__ import annotations

import functools
import types
from typing import Any

import attrs
import pytest

from pai import DefinitionError, Lifecycle, compose_lifecycle, create_pai, define_agent, hookimpl
from pai.lifecycle import HOOK_NAMES, Chains
from pai.testing import ScriptedModel


class Start:
    def __init__(self, name: str) -> None:
        self.name = name

    @hookimpl
    def run_started(self, run):
        """Do nothing."""


class First(Start):
    @hookimpl(tryfirst=True)
    def run_started(self, run):
        """Do nothing."""


class Last(Start):
    @hookimpl(trylast=True)
    def run_started(self, run):
        """Do nothing."""


def order(lifecycle: Lifecycle, phase: str = "run_started") -> list[str]:
    return [hook.plugin for hook in getattr(Chains(lifecycle), phase)]


def faults(*plugins: object) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        compose_lifecycle(*plugins)
    return [str(fault) for fault in caught.value.faults]


# ------------------------------------------------------------------------ order


def test_plugins_run_left_to_right() -> None:
    """A-LIFE-2"""
    assert order(compose_lifecycle(Start("a"), Start("b"), Start("c"))) == ["a", "b", "c"]


def test_compositions_nest_in_place() -> None:
    inner = compose_lifecycle(Start("b"), compose_lifecycle(Start("c")))
    assert order(compose_lifecycle(Start("a"), inner, Start("d"))) == ["a", "b", "c", "d"]


def test_tryfirst_and_trylast_order_within_one_composition() -> None:
    plugins = Last("l1"), Start("a"), First("f1"), Last("l2"), Start("b"), First("f2")
    lifecycle = compose_lifecycle(*plugins)
    assert order(lifecycle) == ["f1", "f2", "a", "b", "l1", "l2"]
    reasons = [hook.reason for hook in Chains(lifecycle).run_started]
    assert reasons == ["tryfirst"] * 2 + ["in the order given"] * 2 + ["trylast"] * 2


def test_plugins_are_told_apart_by_identity() -> None:
    @attrs.frozen
    class Equal:
        name: str = "equal"

        @hookimpl
        def run_started(self, run):
            """Do nothing."""

    assert Equal() == Equal()
    assert order(compose_lifecycle(Equal(), Equal())) == ["equal", "equal"]


def test_a_plugin_without_a_hash_composes() -> None:
    @attrs.define
    class Unhashable:
        items: list[int] = attrs.field(factory=list)

        @hookimpl
        def run_started(self, run):
            """Do nothing."""

    assert order(compose_lifecycle(Unhashable())) != []


def test_a_module_is_a_plugin() -> None:
    module = types.ModuleType("my_plugin")

    @hookimpl
    def run_started(run):
        """Do nothing."""

    module.run_started = run_started  # type: ignore[attr-defined]
    assert order(compose_lifecycle(module)) == ["my_plugin"]


def test_static_and_class_methods_and_other_names_are_hooks() -> None:
    class Odd:
        name = "odd"

        @staticmethod
        @hookimpl
        def run_started(run):
            """Do nothing."""

        @hookimpl
        @staticmethod
        def step_finished(step):
            """Do nothing."""

        @classmethod
        @hookimpl
        def tool_settled(cls, result):
            """Do nothing."""

        @hookimpl(specname="run_settled")
        def at_the_end(self, run):
            """Do nothing."""

    lifecycle = compose_lifecycle(Odd())
    for phase in ("run_started", "step_finished", "tool_settled", "run_settled"):
        assert order(lifecycle, phase) == ["odd"], phase


def test_none_switches_an_inherited_hook_off() -> None:
    class Quiet(Start):
        run_started = None  # type: ignore[assignment]

        @hookimpl
        def run_settled(self, run):
            """Do nothing."""

    lifecycle = compose_lifecycle(Quiet("quiet"))
    assert order(lifecycle) == []
    assert order(lifecycle, "run_settled") == ["quiet"]


def test_properties_are_not_run_to_find_hooks() -> None:
    class Lazy(Start):
        @property
        def expensive(self) -> object:
            raise AssertionError("was run")

        @functools.cached_property
        def cached(self) -> object:
            raise AssertionError("was run")

    assert order(compose_lifecycle(Lazy("lazy"))) == ["lazy"]


# ------------------------------------------------------------------------ mistakes


def test_all_mistakes_are_reported_at_once() -> None:
    class Wrong:
        name = "wrong"

        @hookimpl
        def prepare_rum(self, run):
            """Is no hook."""

        @hookimpl
        def prepare_run(self, run, thread):
            """Has no thread."""

        @hookimpl(wrapper=True)
        def prepare_model_step(self, step):
            return (yield)

        def run_settled(self, run):
            """Is not marked."""

    found = faults(Wrong(), Start)
    assert found == [
        "wrong.run_settled: has a hook's name and no @hookimpl",
        (
            "wrong.prepare_model_step: wrapper=True does not work with async hooks:"
            " use wrap_model_call to stand around the model"
        ),
        "wrong.prepare_rum: there is no hook of this name; did you mean prepare_run?",
        "wrong.prepare_run(thread): there is no such argument; prepare_run has run, state, records",
        "Start: is a class: give an instance, Start(...)",
    ]


def test_one_object_twice_is_refused() -> None:
    plugin = Start("p")
    assert faults(plugin, compose_lifecycle(plugin)) == [
        "p: the same object stands twice: make a second instance"
    ]


@pytest.mark.parametrize("hook", HOOK_NAMES)
def test_a_hook_s_name_without_the_mark_is_a_mistake(hook: str) -> None:
    plugin = Start("p")
    setattr(plugin, hook, lambda: None)
    assert f"p.{hook}: has a hook's name and no @hookimpl" in faults(plugin)


def make(**members: Any) -> object:
    return type("Made", (), {"name": "made", **members})()


def wanting(**arguments: object) -> Any:
    scope: dict[str, Any] = {}
    text = ", ".join(
        name if default is None else f"{name}={default}" for name, default in arguments.items()
    )
    exec(f"def run_started(self, {text}): ...", scope)
    return hookimpl(scope["run_started"])


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        (make(), "has no @hookimpl function"),
        (make(run_started=hookimpl(lambda self, run, *, state: None)), "is keyword-only"),
        (make(run_started=wanting(run="1")), "has a default"),
        (make(run_started=wanting(run=None, records="1")), "has a default"),
        (make(run_started=hookimpl(functools.partial(print))), "is no function or method"),
        (make(hook_timeout=0, run_started=wanting(run=None)), "number of seconds above 0"),
        (make(hook_timeout=True, run_started=wanting(run=None)), "number of seconds above 0"),
        ([], "has no @hookimpl function"),
    ],
)
def test_other_mistakes(plugin: object, text: str) -> None:
    assert text in "\n".join(faults(plugin))


def test_an_async_transform_aside_is_refused() -> None:
    class Slow:
        @hookimpl
        async def transform_aside(self, item):
            """Cannot be awaited where it is called."""

    assert "must be sync" in faults(Slow())[0]


def test_a_generator_where_an_answer_is_wanted_is_refused() -> None:
    class Yields:
        @hookimpl
        async def prepare_run(self, run):
            yield None

    assert "is a generator" in faults(Yields())[0]


def test_a_bare_plugin_is_checked_when_the_runtime_is_built() -> None:
    agent = define_agent(name="a", model=ScriptedModel(), lifecycle=make())
    with pytest.raises(DefinitionError, match=r"agents\.a\.lifecycle\.made"):
        create_pai(agents={"a": agent}, plugins=())


def test_an_unknown_argument_with_a_default_is_the_plugin_s_own() -> None:
    plugin = make(run_started=wanting(run=None, again="1"))
    assert order(compose_lifecycle(plugin)) == ["made"]
