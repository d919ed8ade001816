"""Every property of TextOptions has a name here, and a test that proves it."""

from __future__ import annotations

import inspect
import re

import attrs

import pai
from pai.definition import LoopOptions

from .extensions import load

options = load("options")
rules = load("rules")
ROWS = options.read_options()
PROOFS = rules.find_proofs(rules.test_files())

TEXT_OPTIONS = [
    "abortController",
    "agentLoopStrategy",
    "approvals",
    "capabilities",
    "context",
    "conversationId",
    "lazyToolsConfig",
    "logger",
    "messages",
    "metadata",
    "midConversationChanges",
    "model",
    "modelOptions",
    "outputSchema",
    "parentRunId",
    "parentSubagentRunId",
    "promptCache",
    "reasoning",
    "repairToolInput",
    "request",
    "resume",
    "retry",
    "runId",
    "state",
    "subagentName",
    "subagentRunId",
    "systemPrompts",
    "threadId",
    "toolChoice",
    "toolExecution",
    "tools",
    "wrapFetch",
]


def test_the_table_is_complete():
    assert [row.name for row in ROWS] == sorted(TEXT_OPTIONS)
    known = {rule.id for rule in rules.read_rules()}
    assert [row.name for row in ROWS if row.rule not in known] == []


def test_each_option_is_proven():
    assert [row.name for row in ROWS if row.rule not in PROOFS] == []


def test_where_an_option_can_be_given():
    """What the table says of fields, options and patches is what the code takes."""
    takes = {
        "F": set(inspect.signature(pai.define_agent).parameters),
        "O": {field.name for field in attrs.fields(pai.RunOptions)},
        "P": {
            field.name for patch in (pai.RunPatch, pai.StepPatch) for field in attrs.fields(patch)
        },
    }
    # These are given with the model.
    takes["F"] |= {"model_settings", "provider_options"}
    for row in ROWS:
        named = set(re.findall(r"`(\w+)`", row.ours))
        if row.name == "reasoning":
            named = {"model_settings"}
        for letter in set(row.where) - {"C"}:
            assert named & takes[letter], (row.name, letter)


def test_no_option_is_missing_from_the_table():
    shown = {name for row in ROWS for name in re.findall(r"`(\w+)`", row.ours)}
    ours = {field.name for field in attrs.fields(pai.RunOptions)}
    ours |= {field.name for field in attrs.fields(LoopOptions)}
    assert ours - shown == set()


def test_the_page_has_the_table():
    table = options.render_options()
    assert table.count("\n") == len(TEXT_OPTIONS) + 1
    assert "tests/options/test_stop.py::test_what_stops_a_run" in table
