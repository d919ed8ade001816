"""What importing the room costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pai.schema

HEAVY = [
    "annotated_types",
    "cattrs",
    "docstring_parser",
    "hypothesis",
    "jsonschema_rs",
    "rfc8785",
    "typing_extensions",
    "uuid",
]


def loaded(code: str) -> set[str]:
    check = f"{code}\nimport sys\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, check=True, text=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import pai.schema",
        "from pai.schema import *; parse_json('[1]'); check_json({})",
    ],
)
def test_the_room_loads_nothing_heavy(code):
    assert loaded(code) == set()


def test_plain_functions_need_no_cattrs():
    code = """
from pai.schema import function_schema
def add(ctx, a: int, b: int = 1) -> int:
    \"\"\"Add.\"\"\"
schema = function_schema(add, skip_first=True)
schema.input.parse({"a": 1})
schema.input.json_schema
"""
    assert loaded(code) <= {"uuid"}


def test_the_promise_is_sorted_and_kept():
    # Constants first, as the linter has it.
    names = sorted(pai.schema.__all__, key=lambda name: (not name.isupper(), name))
    assert list(pai.schema.__all__) == names
    for name in pai.schema.__all__:
        assert getattr(pai.schema, name) is not None
