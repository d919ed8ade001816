"""``pai plugins`` and what other commands do with installed plugins: real distributions on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..distributions import HEAD, SIMPLE, Site
from .test_chat import AGENT, pai

LOUD = (
    HEAD
    + '''
import attrs
from pai import StepPatch, SystemMessage, TextDelta

position = "last"

@attrs.frozen
class Options:
    """
    What may be said.

    Args:
        mark: What is put behind a five.
    """

    mark: str = "!"
    times: int = 1
    deep: dict[str, int] = attrs.Factory(dict)

class Loud:
    def __init__(self, options):
        self.options = options

    @hookimpl
    async def transform_step_stream(self, stream):
        async for part in stream:
            if isinstance(part, TextDelta):
                mark = self.options.mark * self.options.times
                part = TextDelta(part.id, part.text.replace("5", "5" + mark))
            yield part

@hookimpl
def register_lifecycle(options):
    return Loud(options)

@hookimpl
def register_cli(app):
    @app.command
    def shout(text: str):
        """Say it louder."""
        print(text.upper())
'''
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give a folder to work in; `site` beside it holds the distributions."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Give a folder of distributions for scripts to see."""
    return Site(tmp_path / "site")


def run(home: Path, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Run the script where the distributions of `site` are installed; others may be, too."""
    root = Path(__file__).parents[2]
    path = f"{home.parent / 'site'}:{root}"
    done = pai(home, *arguments, **{"PYTHONPATH": path, **environment})
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the configuration decide."""
    monkeypatch.delenv("PAI_PLUGINS", raising=False)
    monkeypatch.delenv("PAI_CONFIG", raising=False)


def rows(text: str) -> dict[str, list[str]]:
    lines = [line.split() for line in text.splitlines()[1:]]
    return {line[0]: line[1:] for line in lines}


def test_the_list_says_where_each_comes_from_and_what_it_takes(home: Path, site: Site) -> None:
    site.add("pai-loud", {"loud": "loud"}, version="1.2", loud=LOUD)
    site.add("pai-bad", {"bad": "bad"}, version="0.9", bad="import no_such_module")
    site.add("pai-other", {"other": "other"}, other=SIMPLE)
    code, out, err = run(home, "plugins", "--plugin", "loud", "--plugin", "bad")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == [
        "name", "distribution", "version", "position", "state", "options",
    ]  # fmt: skip
    found = rows(out)
    assert list(found)[:2] == ["loud", "bad"]
    assert found["loud"] == ["pai-loud", "1.2", "last", "loaded", "mark,", "times,", "deep"]
    assert found["bad"] == ["pai-bad", "0.9", "broken"]
    assert found["other"] == ["pai-other", "1.0", "off"]


def test_the_doctor_tells_the_cause_and_fails(home: Path, site: Site) -> None:
    """R-36"""
    site.add("pai-loud", {"loud": "loud"}, version="1.2", loud=LOUD)
    site.add("pai-bad", {"bad": "bad"}, version="0.9", bad="x = 1\nraise KeyError('no config')")
    code, out, _ = run(home, "plugins", "doctor", "--plugin", "loud")
    assert code == 0
    assert "loud: loaded\n  pai-loud 1.2, loud\n  stands right of the agents' own plugins" in out
    assert '  option mark = "!": What is put behind a five.\n  option times = 1\n' in out
    assert out.endswith("1 plugins, 0 broken\n")
    code, out, _ = run(home, "plugins", "doctor", "--plugin", "bad", "--plugin", "loud")
    assert code == 1
    assert "bad: broken\n  pai-bad 0.9, bad\n  KeyError: 'no config'\n  in " in out
    assert "bad.py, line 2" in out
    assert "loud: loaded" in out
    code, out, _ = run(home, "plugins", "doctor", "--option", "loud.times=many", "--plugin", "loud")
    assert code == 1
    assert "plugins.loud.times: expected" in out


def test_chat_loads_what_the_line_the_environment_or_the_file_names(home: Path, site: Site) -> None:
    site.add("pai-loud", {"loud": "loud"}, loud=LOUD)
    site.add("pai-other", {"other": "other"}, other=SIMPLE)
    question = ("chat", "What is 2 + 3?", "--thread")
    (home / "pai.toml").write_text("[plugins.loud]\nmark = '?'\n[plugins.other]\n")
    _, out, err = run(home, *question, "a")
    assert err == ""
    assert "2 + 3 = 5?" in out
    # The environment names others; the options of the file hold for those it names.
    _, out, _ = run(home, *question, "b", PAI_PLUGINS="other,loud")
    assert "2 + 3 = 5?" in out
    assert list(rows(run(home, "plugins", PAI_PLUGINS="other,loud")[1]))[:2] == ["other", "loud"]
    # The command line has the last word.
    options = ("--plugin", "loud", "--option", "loud.times=3", "--option", "loud.deep.a=1")
    _, out, _ = run(home, *question, "c", *options, PAI_PLUGINS="")
    assert "2 + 3 = 5???" in out
    _, out, _ = run(home, "plugins", "--no-plugins")
    assert "loaded" not in out


def test_a_broken_plugin_is_a_warning_and_the_chat_goes_on(home: Path, site: Site) -> None:
    """R-36"""
    site.add("pai-bad", {"bad": "bad"}, bad="import no_such_module")
    code, out, err = run(home, "chat", "What is 2 + 3?", "--plugin", "bad")
    assert (code, "2 + 3 = 5" in out) == (0, True)
    assert err == (
        "warning: plugin 'bad' of pai-bad 1.0 cannot be loaded:"
        " ModuleNotFoundError: No module named 'no_such_module'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--plugin", "nothing"), "no plugin 'nothing' is installed; installed: "),
        (("--plugin", "loud", "--option", "loud.times=x"), "plugins.loud.times: expected"),
        (
            ("--plugin", "loud", "--option", "other.x=1"),
            "other.x: the plugin 'other' is not loaded",
        ),
        (("--plugin", "loud", "--option", "loud"), "loud: expected NAME.KEY=VALUE"),
        (("--no-plugins", "--plugin", "loud"), "--plugin and --option say the contrary"),
    ],
)
def test_what_the_line_says_may_be_wrong(
    home: Path, site: Site, arguments: tuple[str, ...], text: str
) -> None:
    site.add("pai-loud", {"loud": "loud"}, loud=LOUD)
    code, out, err = run(home, "chat", "hello", *arguments)
    assert (code, out) == (1, "")
    assert text in err
    assert not (home / "pai.db").exists()


def test_the_nearest_file_counts_upward(home: Path, site: Site) -> None:
    site.add("pai-loud", {"loud": "loud"}, loud=LOUD)
    site.add("pai-other", {"other": "other"}, other=SIMPLE)
    deep = home / "a" / "b"
    deep.mkdir(parents=True)
    (home / "pai.toml").write_text("plugins = ['other']\n")
    # A project's file that says nothing of us is none of ours.
    (home / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")

    def loaded(**environment: str) -> list[str]:
        site_path = f"{site.folder}:{Path(__file__).parents[2]}"
        done = pai(deep, "plugins", **{"PYTHONPATH": site_path, **environment})
        assert done.returncode == 0, done.stderr
        return [name for name, row in rows(done.stdout).items() if "loaded" in row]

    assert loaded() == ["other"]
    (home / "a" / "pyproject.toml").write_text("[tool.pai]\nplugins = ['loud']\n")
    assert loaded() == ["loud"]
    (home / "elsewhere.toml").write_text("[plugins]\nother = {}\nloud = {times = 2}\n")
    assert loaded(PAI_CONFIG=str(home / "elsewhere.toml")) == ["other", "loud"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("plugins = 5", "plugins: expected a list of names, or a table of options by name"),
        ("[plugins]\nloud = true", "plugins.loud: expected a table of options"),
        ("plugin = ['loud']", "plugin: there is no such key; keys: plugins, store"),
        ("plugins = [", "cannot be read"),
    ],
)
def test_a_file_with_faults_is_told(home: Path, site: Site, text: str, fault: str) -> None:
    (home / "pai.toml").write_text(text)
    code, _, err = run(home, "plugins")
    assert code == 1
    assert str(home / "pai.toml") in err
    assert fault in err
    code, _, err = run(home, "plugins", PAI_CONFIG="nowhere.toml")
    assert (code, "PAI_CONFIG: 'nowhere.toml' is no file" in err) == (1, True)


def test_hooks_shows_installed_ones_with_their_distributions(home: Path, site: Site) -> None:
    site.add("pai-loud", {"loud": "loud"}, loud=LOUD)
    own = "\nfrom pai import hookimpl\nclass Own:\n    name = 'own'\n    @hookimpl\n"
    own += "    def transform_step_stream(self, stream):\n        return stream\n"
    text = AGENT.replace("tools={", "lifecycle=Own(), tools={").replace("\nagent", own + "\nagent")
    (home / "mine.py").write_text(text)
    code, out, err = run(home, "hooks", "mine.py", "--plugin", "loud")
    assert (code, err) == (0, "")
    assert out == (
        "transform_step_stream\n"
        "  1. own: in the order given\n"
        "  2. loud (pai-loud): in the order given\n"
    )


def test_check_compares_the_plugins_with_those_recorded(home: Path, site: Site) -> None:
    site.add("pai-loud", {"loud": "loud"}, version="1.2", loud=LOUD)
    (home / "mine.py").write_text(AGENT)
    check = ("check", "mine.py", "--values", "1")
    code, out, _ = run(home, *check, "--lock", "plugins.lock", "--plugin", "loud")
    assert code == 0, out
    assert json.loads((home / "plugins.lock").read_text()) == {
        "plugins": [{"name": "loud", "distribution": "pai-loud", "version": "1.2"}]
    }
    code, out, _ = run(home, *check, "--locked", "plugins.lock", "--plugin", "loud")
    assert code == 0, out
    site.add("pai-new", {"new": "new"}, new=SIMPLE)
    info = site.folder / "pai_loud-1.2.dist-info" / "METADATA"
    info.write_text(info.read_text().replace("1.2", "1.3"))
    code, out, _ = run(
        home, *check, "--locked", "plugins.lock", "--plugin", "loud", "--plugin", "new"
    )
    assert code == 1
    assert "plugins.loud: FAULT: plugins.lock has pai-loud 1.2, pai-loud 1.3 is loaded" in out
    assert "plugins.new: FAULT: plugins.lock does not have it, pai-new 1.0 is loaded" in out
    code, out, _ = run(home, *check, "--locked", "plugins.lock", "--no-plugins")
    assert (code, "pai-loud 1.2, it is not loaded" in out) == (1, True)
    # What is broken is a fault, and nothing is recorded.
    site.add("pai-bad", {"bad": "bad"}, bad="import no_such_module")
    code, out, _ = run(home, *check, "--lock", "other.lock", "--plugin", "bad")
    assert (code, "plugins.bad: FAULT: plugin 'bad' of pai-bad" in out) == (1, True)
    assert not (home / "other.lock").exists()
    (home / "odd.lock").write_text("[]")
    code, _, err = run(home, *check, "--locked", "odd.lock", "--no-plugins")
    assert (code, "odd.lock: is no file that --lock has written" in err) == (1, True)


def test_plugins_add_commands(home: Path, site: Site) -> None:
    site.add("pai-loud", {"loud": "loud"}, loud=LOUD)
    bad = SIMPLE + "@hookimpl\ndef register_cli(app):\n    app.command(print, name='chat')\n"
    site.add("pai-bad", {"bad": "bad"}, bad=bad)
    names = "bad,loud"
    code, out, err = run(home, "shout", "hello", PAI_PLUGINS=names)
    assert (code, out) == (0, "HELLO\n")
    assert "warning: the commands of the plugin 'bad' of pai-bad are left out: " in err
    code, out, _ = run(home, "--help", PAI_PLUGINS=names)
    assert (code, "Say it louder." in out) == (0, True)
    # Our own commands are nobody else's, and cost no look at plugins.
    code, out, err = run(home, "chat", "What is 2 + 3?", "--no-plugins", PAI_PLUGINS=names)
    assert (code, err, "2 + 3 = 5" in out) == (0, "", True)
    code, _, _ = run(home, "shout", "hello", PAI_PLUGINS="")
    assert code != 0
