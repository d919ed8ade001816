"""``pai check``: the third net for schemas (A-META-2), and how its findings are told."""

from __future__ import annotations

import datetime as dt
import enum
import re
import subprocess
import sys
import uuid
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

import annotated_types as at
import attrs
import pytest
from attrs import validators

from pai import MetadataSchemas, define_agent, define_command, tool
from pai.cli._check import print_check, subjects
from pai.lifecycle import load_plugins
from pai.schema import Schema, compile_schema
from pai.testing import Finding, search

VALUES = 200
NONE = load_plugins(())


def strip(text: str) -> str:
    return text.strip()


def squeeze(text: str) -> str:
    return text.replace("  ", " ")


@attrs.frozen
class Squeezed:
    """Stable for most texts, and for all fixed probes: three blanks become two, two become one."""

    note: str = attrs.field(default="", converter=squeeze)


@attrs.frozen
class Holder:
    items: list[Squeezed] = attrs.field(factory=list)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@attrs.frozen
class Node:
    """A bit of everything that the search must find values for."""

    weight: Annotated[float, at.Gt(0), at.Le(10)]
    colour: Colour
    code: Annotated[str, re.compile(r"^[A-Z]{2}[0-9]{3}$")]
    key: uuid.UUID
    kind: Literal["a", "b", 3]
    pair: tuple[int, str] = (1, "a")
    even: Annotated[int, at.MultipleOf(2), at.Ge(-10)] = 0
    when: dt.datetime | None = None
    day: dt.date | None = None
    children: list[Node] = attrs.field(factory=list)
    by_name: dict[Annotated[str, at.Len(1, 3)], int] = attrs.field(factory=dict)
    anything: object = None


def found_in(tp: object, values: int = VALUES) -> Finding:
    return search(compile_schema(tp), at="x", values=values)


def test_a_converter_that_is_unstable_for_some_values_only_passes_the_other_nets():
    """A-META-2: defining the agent does not see it, the search does."""
    bags = MetadataSchemas(private=Squeezed, public=Squeezed)
    define_agent(name="calc", model="demo", run_metadata=bags)
    found = found_in(Squeezed)
    assert found.value == {"note": "   "}
    assert found.fault is not None
    assert found.fault.path == "x.note"
    assert found.taken > 10


def test_the_path_leads_to_the_field():
    """A-META-2."""
    found = found_in(Holder)
    value: Any = found.value
    assert value["items"][0] == {"note": "   "}
    assert found.fault is not None
    assert found.fault.path == "x.items[0].note"


def test_values_are_found_for_types_of_all_kinds():
    """A-META-2: most of them are taken, and nothing is wrong with this one."""
    found = found_in(Node, 60)
    assert found.fault is None
    assert found.taken > found.tried / 4


@pytest.mark.parametrize(
    "tp",
    [
        Annotated[int, at.Ge(5), at.Lt(7)],
        Annotated[int, at.MultipleOf(7), at.Gt(1)],
        Annotated[float, at.Ge(-0.5), at.Lt(0.5)],
        Annotated[float, at.MultipleOf(0.5)],
        Annotated[list[int], at.Len(2, 3)],
        Annotated[str, at.Len(3, 5)],
        dict[str, list[bool]],
        int | None,
        dt.date | int,
    ],
)
def test_values_stay_within_bounds(tp):
    """A-META-2: enough of what is generated is taken, or nothing would be checked."""
    found = found_in(tp, 60)
    assert found.fault is None
    assert found.taken > found.tried / 8


def test_what_does_not_fit_the_json_schema_is_found():
    """A-TOOL-6: clients go by it."""
    schema = compile_schema(list[int])
    narrower = Schema(schema.type, schema.shape)
    narrower._json_schema = {"type": "array", "items": {"type": "integer", "not": {"minimum": 10}}}
    found = search(narrower, at="x", values=50)
    assert found.fault is not None
    assert (found.value, found.fault.path) == ([10], "x[0]")
    assert "JSON Schema" in found.fault.message


@attrs.frozen
class Short:
    """What is tidied first may be longer than what is kept."""

    code: str = attrs.field(default="", converter=strip, validator=validators.max_len(2))
    digits: Annotated[str, re.compile(r"^\d*$")] | None = None


def test_small_differences_of_dialect_and_tidied_input_are_no_faults():
    """A-META-4: a canonical coercion is fine; so is a digit of another script."""
    found = found_in(Short)
    assert found.fault is None
    assert found.taken > 20


def test_a_default_that_is_wrong_now_and_then_is_found():
    """A-META-3: default factories run for each value."""
    numbers = count()
    cls = attrs.make_class(
        "Bag",
        {"n": attrs.field(type=int, factory=lambda: "x" if next(numbers) % 5 == 4 else 1)},
    )
    found = found_in(cls)
    assert found.fault is not None
    assert found.fault.path == "x.n"


def test_what_nothing_fits_is_said():
    """A-META-2."""
    cls = attrs.make_class("Bag", {"n": attrs.field(type=int, validator=lambda i, a, v: 1 / 0)})
    found = found_in(cls, 50)
    assert (found.taken, found.fault) == (0, None)
    assert found.tried


@tool(data=Short)
def look(ctx, squeezed: Squeezed) -> Holder:
    """Look."""
    return Holder()


BAD = define_agent(
    name="bad",
    model="nobody:x",
    identity=Short,
    client_data=dict[str, int],
    run_metadata=MetadataSchemas(private=Squeezed, public=Squeezed),
    ui_data={"part": Holder},
    tools={"look": look},
    commands={
        "rate": define_command(
            name="rate",
            description="Rate.",
            input=Squeezed,
            output=int,
            execute=lambda ctx, given: 1,
        )
    },
)


def test_every_schema_of_an_agent_is_a_subject():
    """A-META-2, A-UI-2, A-TOOL-6: metadata, data parts, tools, and what is stored with a run."""
    assert [path for path, _ in subjects(BAD)] == [
        "identity",
        "client_data",
        "run_metadata.private",
        "run_metadata.public",
        "ui_data.part",
        "tools.look.input",
        "tools.look.output",
        "tools.look.data",
        "commands.rate.input",
        "commands.rate.output",
    ]


def test_the_report_names_each_schema_and_each_fault(capsys):
    """A-META-2: with its path and the value."""
    assert print_check(BAD, values=VALUES, plugins=NONE) == 1
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0].startswith("model: FAULT: no model provider 'nobody'")
    assert re.fullmatch(r"identity: \d+ values, \d+ taken, no fault", lines[1])
    assert "run_metadata.private: FAULT at run_metadata.private.note: not stable" in printed
    assert '  seen with {"note":"   "}' in lines
    assert "tools.look.input: FAULT at tools.look.input.squeezed.note: " in printed
    assert re.fullmatch(r"commands\.rate\.output: \d+ values, \d+ taken, no fault", lines[-2])
    assert lines[-1] == "bad 0.0.0: 7 faults"


def test_a_lifecycle_that_cannot_be_composed_is_a_fault(capsys):
    """A-DEF-2: definition keeps it as it is; the check need not wait for a runtime."""

    class Twice:
        def prepare_run(self, run): ...

    agent = define_agent(name="calc", model="demo", lifecycle=Twice())
    assert print_check(agent, values=1, plugins=NONE) == 1
    assert "lifecycle" in capsys.readouterr().out


def test_a_missing_key_is_no_fault(capsys, monkeypatch):
    """The key is where the agent runs, not where it is checked."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    agent = define_agent(name="calc", model="openai:gpt-5.2")
    assert print_check(agent, values=1, plugins=NONE) == 0
    assert capsys.readouterr().out == "calc 0.0.0: no faults\n"


APP = """
from pai import define_agent, tool

@tool
def shout(ctx, text: str) -> str:
    "Say it louder."
    return text.upper()

agent = define_agent(name={name!r}, model="demo", tools={{"shout": shout}}, max_steps={steps})
"""
WITHOUT = """
import sys
sys.modules["hypothesis"] = None
sys.argv = ["pai", "check", sys.argv[1]]
from pai.cli import main
main()
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


def app(folder: Path, **fields: Any) -> str:
    path = folder / "mine.py"
    path.write_text(APP.format(**{"name": "shouter", "steps": 3, **fields}))
    return str(path)


def test_the_command(tmp_path):
    """A-META-2: exit code 0 where nothing is wrong."""
    made = run("-m", "pai", "check", app(tmp_path), "--values", "20")
    assert made.stderr == ""
    assert made.stdout.splitlines()[-1] == "shouter 0.0.0: no faults"
    assert "tools.shout.input: 20 values" in made.stdout
    assert made.returncode == 0


def test_an_agent_that_cannot_be_defined(tmp_path):
    """A-DEF-2: all its faults, and exit code 1."""
    made = run("-m", "pai", "check", app(tmp_path, name="no name", steps=0))
    assert made.returncode == 1
    assert made.stdout == ""
    assert "agent 'no name': 2 faults\n  - name: " in made.stderr
    assert "\n  - max_steps: " in made.stderr


def test_without_hypothesis_what_can_be_checked_is_checked(tmp_path):
    """A-META-2: and the rest is said, not passed over."""
    made = run("-c", WITHOUT, app(tmp_path))
    assert made.stderr == ""
    assert "pip install hypothesis" in made.stdout
    assert made.stdout.splitlines()[-1] == "shouter 0.0.0: no faults"
    assert made.returncode == 0
