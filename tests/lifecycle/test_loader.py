"""Installed plugins: found, loaded each on its own, and placed around the agents' own."""

from __future__ import annotations

import logging
import types

import pytest

from pai import (
    DefinitionError,
    PaiError,
    PluginError,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
)
from pai.lifecycle import LoadedPlugins, load_plugins
from pai.testing import ScriptedModel

from ..distributions import HEAD, SIMPLE, Site


class Own:
    name = "own"

    @hookimpl
    def run_started(self, run):
        """Do nothing."""


class LastOwn(Own):
    name = "last-own"
    position = "last"


def states(loaded: LoadedPlugins) -> dict[str, str]:
    return {report.name: report.state for report in loaded.reports}


def order(loaded: LoadedPlugins, own: object = None) -> list[str]:
    lifecycle = loaded.around(own)
    return [lifecycle.name_of(plugin) for plugin in lifecycle.plugins]


def faults(plugins: object) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        load_plugins(plugins)
    return [str(fault) for fault in caught.value.faults]


def factory(body: str) -> str:
    """A module whose `register_lifecycle` returns what *body* says."""
    return HEAD + (
        "class Plugin:\n"
        "    def __init__(self, name=None):\n"
        "        if name: self.name = name\n"
        "    @hookimpl\n"
        "    def run_started(self, run): ...\n"
        "@hookimpl\n"
        "def register_lifecycle(options):\n"
        f"    {body}\n"
    )


# ------------------------------------------------------------------------ where they stand


def test_plugins_stand_in_order_of_their_names_around_the_agent_s_own(site: Site) -> None:
    site.add("pai-z", {"zebra": "zebra"}, zebra=SIMPLE)
    site.add("pai-m", {"mole": "mole"}, mole=SIMPLE + "position = 'last'\n")
    site.add("pai-a", {"ape": "ape"}, ape=SIMPLE)
    loaded = load_plugins()
    assert order(loaded, Own()) == ["ape", "zebra", "own", "mole"]
    assert [(r.name, r.distribution, r.version, r.position) for r in loaded.reports] == [
        ("ape", "pai-a", "1.0", "first"),
        ("mole", "pai-m", "1.0", "last"),
        ("zebra", "pai-z", "1.0", "first"),
    ]


def test_a_list_fixes_set_and_order(site: Site) -> None:
    for name in ("ape", "mole", "zebra"):
        site.add(f"pai-{name}", {name: name}, **{name: SIMPLE})
    own = Own()
    assert order(load_plugins(["zebra", own, "ape"])) == ["zebra", "own", "ape"]
    assert order(load_plugins({"mole": None, "ape": {}})) == ["mole", "ape"]
    assert order(load_plugins([{"zebra": {}}, "ape"])) == ["zebra", "ape"]
    assert order(load_plugins(())) == []
    assert order(load_plugins(["mole", LastOwn(), "zebra"]), own) == [
        "mole", "zebra", "own", "last-own",
    ]  # fmt: skip


def test_the_environment_says_which_unless_the_program_does(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ape", "mole", "zebra"):
        site.add(f"pai-{name}", {name: name}, **{name: SIMPLE})
    monkeypatch.setenv("PAI_PLUGINS", "zebra, ape,")
    assert order(load_plugins()) == ["zebra", "ape"]
    assert order(load_plugins(["mole"])) == ["mole"]
    monkeypatch.setenv("PAI_PLUGINS", "")
    assert order(load_plugins()) == []
    monkeypatch.setenv("PAI_PLUGINS", "ape,mule")
    assert faults(None) == [
        "PAI_PLUGINS: no plugin 'mule' is installed; installed: ape, mole, zebra"
    ]


@pytest.mark.anyio
async def test_a_runtime_loads_them_and_run_once_does_not(site: Site) -> None:
    """R-36"""
    site.add("pai-ape", {"ape": "ape"}, ape=SIMPLE)
    model = ScriptedModel(["One.", "Two."])
    agent = define_agent(name="a", model=model, lifecycle=Own())
    async with create_pai(agents={"a": agent}) as app:
        assert [report.name for report in app.plugins] == ["ape"]
    site.add("pai-bad", {"bad": "bad"}, bad="raise ValueError")
    # Not even found: it would be reported.
    told: list[BaseException] = []
    await run_once(agent, "go", on_runtime_error=told.append)
    assert told == []
    await run_once(agent, "go", plugins=["bad"], on_runtime_error=told.append)
    assert [error.plugin for error in told if isinstance(error, PluginError)] == ["bad"]


# ------------------------------------------------------------------------ what they give


def test_a_plugin_gives_one_or_several_or_itself_or_none(site: Site) -> None:
    site.add("pai-one", {"one": "one"}, one=factory("return Plugin()"))
    site.add("pai-two", {"two": "two"}, two=factory("return [Plugin('x'), Plugin('y')]"))
    site.add("pai-three", {"three": "three"}, three=factory("return None"))
    itself = SIMPLE + "@hookimpl\ndef register_lifecycle(): ...\n"
    site.add("pai-four", {"four": "four"}, four=itself)
    site.add("pai-five", {"five": "five:plugin"}, five=factory("...") + "plugin = Plugin()\n")
    composed = SIMPLE + (
        "import sys\n"
        "from pai import compose_lifecycle\n"
        "class More:\n"
        "    name = 'more'\n"
        "    run_started = staticmethod(run_started)\n"
        "lifecycle = compose_lifecycle(More(), sys.modules[__name__])\n"
    )
    site.add("pai-six", {"six": "six:lifecycle"}, six=composed)
    loaded = load_plugins(["one", "two", "three", "four", "five", "six"], strict=True)
    assert order(loaded) == ["one", "x", "y", "four", "five", "more", "six"]
    assert states(loaded)["three"] == "aside"


def test_each_runtime_gets_plugins_of_its_own(site: Site) -> None:
    site.add("pai-one", {"one": "one"}, one=factory("return Plugin()"))
    (first,), (second,) = load_plugins().left.plugins, load_plugins().left.plugins
    assert first is not second


@pytest.mark.anyio
async def test_a_hook_that_raises_names_its_distribution(site: Site) -> None:
    """R-33"""
    source = HEAD + "@hookimpl\ndef prepare_run(run):\n    raise ValueError('secret')\n"
    site.add("pai-bad", {"bad": "bad"}, version="2.5", bad=source)
    told: list[BaseException] = []
    agent = define_agent(name="a", model=ScriptedModel())
    await run_once(agent, "go", plugins=["bad"], on_runtime_error=told.append)
    (error,) = told
    assert isinstance(error, PluginError)
    assert (error.plugin, error.distribution, error.phase) == ("bad", "pai-bad", "prepare_run")


# ------------------------------------------------------------------------ broken ones

BROKEN = {
    "import": ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of"),
    "syntax": ("def (", "SyntaxError: "),
    "raises": ("raise RuntimeError('a secret')", "RuntimeError in "),
    "exits": ("import sys\nsys.exit(3)", "SystemExit in "),
    "unmarked": ("def prepare_run(run): ...", "has a hook's name and no @hookimpl"),
    "empty": ("", "has no @hookimpl function"),
    "unknown": (HEAD + "@hookimpl\ndef prepare_rum(run): ...", "did you mean prepare_run?"),
    "register": (factory("raise KeyError('a secret')"), "KeyError in "),
    "gives": (factory("return 5"), "has no @hookimpl function"),
    "unused": (
        factory("return Plugin()") + "@hookimpl\ndef prepare_run(run): ...\n",
        "unused.prepare_run: would never run",
    ),
    "position": (SIMPLE + "position = 'middle'\n", 'expected "last", or nothing'),
    "options": (SIMPLE + "Options = 5\n", "TypeError in "),
    "schema": (
        SIMPLE + "import attrs\n@attrs.frozen\nclass Options:\n    x: complex = 0\n",
        "DefinitionError: schema Options",
    ),
    "needs": (
        SIMPLE + "import attrs\n@attrs.frozen\nclass Options:\n    x: int\n",
        "needs options: plugins.needs.x: required",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plugin_is_reported_and_the_others_work(site: Site, name: str) -> None:
    """R-36: by name, distribution and cause."""
    source, cause = BROKEN[name]
    site.add(f"pai-{name}", {name: name}, version="2.0", **{name: source})
    site.add("pai-good", {"good": "good"}, good=SIMPLE)
    loaded = load_plugins()
    assert order(loaded) == ["good"]
    report = next(report for report in loaded.reports if report.name == name)
    error = report.error
    assert error is not None
    assert (report.state, error.plugin, error.distribution) == ("broken", name, f"pai-{name}")
    assert str(error).startswith(f"plugin {name!r} of pai-{name} 2.0 cannot be loaded: ")
    assert cause in str(error)
    assert error.__cause__ is not None
    #
    assert "secret" not in str(error)
    with pytest.raises(PluginError) as caught:
        load_plugins(strict=True)
    assert str(caught.value) == str(error)


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("good:nothing", "the module 'good' has no 'nothing'"),
        ("no good", "is neither 'module' nor 'module:attribute'"),
        ("good:Class", "is a class: give an instance, Class(...)"),
    ],
)
def test_an_entry_point_that_names_no_plugin(site: Site, value: str, cause: str) -> None:
    site.add("pai-good", {"a": value, "good": "good"}, good=SIMPLE + "class Class: ...\n")
    loaded = load_plugins()
    assert states(loaded) == {"a": "broken", "good": "loaded"}
    assert cause in str(loaded.reports[0].error)


def test_several_broken_ones_are_told_at_once(site: Site) -> None:
    for name in ("a", "b"):
        site.add(f"pai-{name}", {name: f"mod_{name}"}, **{f"mod_{name}": "import no_such"})
    with pytest.raises(PluginError, match="2 plugins are broken") as caught:
        load_plugins(strict=True)
    assert "'a' of pai-a" in str(caught.value)
    assert "'b' of pai-b" in str(caught.value)


def test_two_of_one_name_are_refused(site: Site) -> None:
    """R-36"""
    site.add("pai-one", {"same": "one", "good": "good"}, one=SIMPLE, good=SIMPLE)
    site.add("pai-two", {"same": "two"}, two=SIMPLE)
    loaded = load_plugins()
    assert order(loaded) == ["good"]
    assert [str(report.error) for report in loaded.reports if report.error] == [
        "plugin 'same' of pai-one 1.0 is left out: pai-two (two) has the same name",
        "plugin 'same' of pai-two 1.0 is left out: pai-one (one) has the same name",
    ]
    assert [report.state for report in load_plugins(["good"]).reports] == ["loaded"]
    with pytest.raises(PluginError):
        load_plugins(["same"], strict=True)


def test_two_versions_on_the_path_are_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.add("pai_One", {"one": "one"}, version="1.0", one=SIMPLE)
    info = site.folder / "pai_One-1.0.dist-info"
    other = site.folder / "pai_one-2.0.dist-info"
    other.mkdir()
    for file in info.iterdir():
        (other / file.name).write_text(file.read_text().replace("pai_One", "pai-one"))
    assert states(load_plugins(strict=True)) == {"one": "loaded"}


def test_one_object_from_two_entry_points_stands_once(site: Site) -> None:
    site.add("pai-one", {"a": "one", "b": "one"}, one=SIMPLE)
    loaded = load_plugins()
    assert states(loaded) == {"a": "loaded", "b": "broken"}
    assert "the same object stands twice" in str(loaded.reports[1].error)


def test_a_distribution_that_cannot_be_read_hides_no_other(site: Site) -> None:
    site.add("pai-torn", "[pai]\nthis is no entry point\n")
    site.add("pai-bare", {"bare": "bare"}, version=None, bare=SIMPLE)
    site.add("else-torn", "[console_scripts]\nneither is this\n")
    loaded = load_plugins()
    assert states(loaded) == {"bare": "loaded", "pai-torn": "broken"}
    bare = loaded.reports[0]
    assert (bare.distribution, bare.version) == ("pai_bare", None)


def test_the_application_s_way_of_stopping_goes_through(site: Site) -> None:
    site.add("pai-a", {"a": "mod_a"}, mod_a="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load_plugins()


@pytest.mark.anyio
async def test_a_broken_plugin_is_told_to_the_application(site: Site) -> None:
    """R-36, A-RUN-3"""
    site.add("pai-bad", {"bad": "bad"}, bad="import no_such")
    agent = define_agent(name="a", model=ScriptedModel())
    told: list[BaseException] = []
    async with create_pai(agents={"a": agent}, on_runtime_error=told.append):
        (error,) = told
    assert isinstance(error, PluginError)
    assert (error.plugin, error.distribution) == ("bad", "pai-bad")
    with pytest.raises(PluginError, match="No module named 'no_such'"):
        create_pai(agents={"a": agent}, strict=True)


def test_each_is_logged_once_with_its_version(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pai.hooks")
    site.add("pai-logged", {"logged": "logged"}, version="7.1", logged=SIMPLE)
    site.add("pai-unlogged", {"unlogged": "unlogged"}, unlogged="raise ValueError('secret')")
    for _ in range(3):
        load_plugins()
    first, second = [record.getMessage() for record in caplog.records]
    assert first == "plugin 'logged' of pai-logged 7.1: loaded"
    assert second.startswith("plugin 'unlogged' of pai-unlogged 1.0 cannot be loaded: ValueError")
    assert "secret" not in second


# ------------------------------------------------------------------------ options

TAKES = HEAD + (
    "import attrs\n"
    "@attrs.frozen\n"
    "class Options:\n"
    "    mode: str = 'mask'\n"
    "    size: int = 1\n"
    "class Plugin:\n"
    "    def __init__(self, options):\n"
    "        self.options = options\n"
    "    @hookimpl\n"
    "    def run_started(self, run): ...\n"
    "@hookimpl\n"
    "def register_lifecycle(options):\n"
    "    return Plugin(options)\n"
)


def test_options_are_checked_by_the_plugin_s_class(site: Site) -> None:
    site.add("pai-one", {"one": "one"}, one=TAKES)
    (plugin,) = load_plugins({"one": {"mode": "hash"}}).left.plugins
    assert (plugin.options.mode, plugin.options.size) == ("hash", 1)  # type: ignore[attr-defined]
    (plugin,) = load_plugins().left.plugins
    assert plugin.options.mode == "mask"  # type: ignore[attr-defined]


def test_all_faults_of_all_options_are_told_at_once(site: Site) -> None:
    site.add("pai-one", {"one": "one"}, one=TAKES)
    site.add("pai-two", {"two": "two"}, two=TAKES)
    site.add("pai-three", {"three": "three"}, three=SIMPLE)
    asked = {
        "one": {"mode": 5, "color": "red"},
        "two": {"size": "big"},
        "three": {"x": 1},
    }
    found = faults(asked)
    paths = [fault.partition(":")[0] for fault in found]
    assert sorted(paths) == [
        "plugins.one.color", "plugins.one.mode", "plugins.three", "plugins.two.size",
    ]  # fmt: skip
    assert "plugins.three: takes no options" in found
    agent = define_agent(name="a", model=ScriptedModel())
    with pytest.raises(DefinitionError, match="create_pai"):
        create_pai(agents={"a": agent}, plugins=asked)


def test_options_that_do_not_fit_together_are_told_like_the_others(site: Site) -> None:
    refusing = factory(
        "from pai import DefinitionError, Fault; raise DefinitionError([Fault('mode', 'no')])"
    )
    site.add("pai-one", {"one": "one"}, one=refusing)
    site.add("pai-two", {"two": "two"}, two=refusing)
    assert faults(["one", "two"]) == ["plugins.one.mode: no", "plugins.two.mode: no"]
    # Where nobody asked for them, nobody has to choose again.
    assert states(load_plugins()) == {"one": "broken", "two": "broken"}


def test_nothing_is_made_where_options_do_not_fit(site: Site) -> None:
    made = factory("import builtins; builtins.made_one = True; return Plugin()")
    site.add("pai-one", {"one": "one"}, one=made)
    site.add("pai-two", {"two": "two"}, two=TAKES)
    faults({"one": {}, "two": {"size": "big"}})
    import builtins

    assert not hasattr(builtins, "made_one")


@pytest.mark.parametrize(
    ("plugins", "text"),
    [
        ("one", "expected a list of names and plugins, got str"),
        (Own(), "expected a list of names and plugins, got Own"),
        (["one", "one"], "plugins[1]: 'one' stands there twice"),
        (["one", {"one": {}}], "plugins.one: 'one' stands there twice"),
        ([""], "plugins[0]: is empty"),
        (["none"], "plugins[0]: no plugin 'none' is installed; installed: one"),
        ([Own, 5], "plugins[0].own: is a class"),
        ([types.SimpleNamespace(prepare_run=5)], "plugins[0].SimpleNamespace.prepare_run: has a"),
    ],
)
def test_what_is_asked_for_may_be_wrong(site: Site, plugins: object, text: str) -> None:
    site.add("pai-one", {"one": "one"}, one=SIMPLE)
    assert text in "\n".join(faults(plugins))


def test_a_name_that_is_not_installed_is_an_error_in_any_case(site: Site) -> None:
    agent = define_agent(name="a", model=ScriptedModel())
    with pytest.raises(PaiError, match="installed: none"):
        create_pai(agents={"a": agent}, plugins=["rga"])
