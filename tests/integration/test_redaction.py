"""pai-redaction: after a run over HTTP and SQLite a planted secret is nowhere."""

from __future__ import annotations

import json
import logging
import sqlite3
from pathlib import Path
from typing import Any

import attrs
import pytest
from pai_redaction import Rule, redaction

from pai import Event, ToolError, create_pai, define_agent, tool
from pai.models import OpenAIChat, OpenAIResponses
from pai.protocol import encode_events

from ..aimock import Aimock

pytestmark = pytest.mark.anyio

# One for each way in; each is a rule's, and no part of one is in the code's own words.
TYPED = "typed.alice@example.com"
THOUGHT = "DE89 3704 0044 0532 0130 00"
SPOKEN = "4111 1111 1111 1111"
ASKED = "asked.bob@example.com"
FOUND = "AKIAIOSFODNN7EXAMPLE"
FAILED = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF-1234567890"
WRITTEN = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----"
REPORTED = "203.0.113.77"
OWN = "Projekt Nachtfalter"
BROKEN = "broken.carol@example.com"
SECRETS = (TYPED, THOUGHT, SPOKEN, ASKED, FOUND, FAILED, WRITTEN, REPORTED, OWN, BROKEN)


@attrs.define
class Note:
    text: str


@tool(data=Note)
def find(ctx: Any, who: str) -> dict[str, str]:
    """Find somebody."""
    ctx.progress(Note(f"from {REPORTED}"))
    ctx.write_data("note", Note(f"key {WRITTEN}"))
    return {who: f"{FOUND} of {who} and {OWN}"}


@tool
def refuse(ctx: Any) -> str:
    """Refuse."""
    raise ToolError(f"no token {FAILED}")


@tool
def crash(ctx: Any) -> str:
    """Crash."""
    raise RuntimeError(BROKEN)


TOOLS = {"find": find, "refuse": refuse, "crash": crash}


def load(aimock: Aimock) -> None:
    """A turn that thinks, speaks and calls; one that sums up; and one on another day."""
    # The address is behind an escape, as some models write it.
    arguments = json.dumps({"who": ASKED}).replace("@", "\\u0040")
    calls = [
        {"name": "find", "arguments": arguments},
        {"name": "refuse", "arguments": "{}"},
        {"name": "crash", "arguments": "{}"},
    ]
    first = {
        "reasoning": f"The account is {THOUGHT}, I think.",
        "content": f"Your card is {SPOKEN}, and {OWN} goes on.",
        "toolCalls": calls,
    }
    aimock.load(
        [
            {"match": {"userMessage": "Thanks"}, "response": {"content": f"Bye, {TYPED}"},
             "chunkSize": 4},
            {"match": {"hasToolResult": True}, "chunkSize": 5,
             "response": {"content": f"It is {ASKED}.", "reasoning": f"{FOUND}?"}},
            {"match": {"userMessage": "I am"}, "response": first, "chunkSize": 3},
        ]
    )  # fmt: skip


def rows(path: Path) -> str:
    """Every row of every table, as text."""
    told = []
    with sqlite3.connect(path) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            for row in database.execute(f'SELECT * FROM "{table}"'):
                cells = [
                    cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
                    for cell in row
                ]
                told.append(f"{table}: {' | '.join(cells)}")
    database.close()
    return "\n".join(told)


def traces(text: str) -> list[str]:
    """The secrets of which *text* has a trace: as they are, in JSON, or escaped twice."""
    found = []
    for secret in SECRETS:
        once = json.dumps(secret)[1:-1]
        forms = {secret, once, json.dumps(once)[1:-1], secret.replace("@", "\\u0040")}
        # Half a secret is one, too: no cut of a stream may let its beginning pass.
        forms |= {secret[:9], secret[-9:]}
        if any(form in text for form in forms):
            found.append(secret)
    return found


async def seen(
    kind: Any, lifecycle: Any, aimock: Aimock, path: Path, caplog: pytest.LogCaptureFixture
) -> dict[str, str]:
    """Two runs, and all that can be seen of them, as text by its place."""
    load(aimock)
    agent = define_agent(
        name="a",
        model=kind("o3-mini", base_url=aimock.url, api_key="sk-none"),
        tools=TOOLS,
        ui_data={"note": Note},
        lifecycle=lifecycle,
    )
    events: list[Event] = []
    with caplog.at_level(logging.DEBUG):
        async with create_pai(agents={"main": agent}, store=f"sqlite:///{path}", plugins=()) as app:
            thread = app.thread("main", thread_id="t")
            for text in (f"I am {TYPED}, of {OWN}.", "Thanks"):
                run = await thread.send(text)
                events += [event async for event in run.events()]
                result = await run.result()
                assert result.status == "completed", result.error
            state = await thread.state()
    assert {
        "reasoning-delta", "tool-input-delta", "tool-call", "tool-output", "tool-error",
        "tool-progress", "data",
    } <= {event.type for event in events}  # fmt: skip
    requests = [entry["body"] for entry in aimock.journal()]
    assert len(requests) == 3
    files = [file.read_bytes() for file in sorted(path.parent.iterdir())]
    return {
        "requests": json.dumps(requests, ensure_ascii=False),
        "wire": str(encode_events(events)),
        "events": repr(events),
        # What a client puts together of pieces.
        "deltas": "".join([getattr(event, "text", "") for event in events]),
        "state": repr(state),
        "rows": rows(path),
        "files": b"".join(files).decode("utf-8", "replace"),
        "log": "\n".join([f"{each.getMessage()} {each.exc_info}" for each in caplog.records]),
    }


KINDS = pytest.mark.parametrize("kind", [OpenAIChat, OpenAIResponses])


@KINDS
@pytest.mark.parametrize("mode", ["mask", "hash", "remove"])
async def test_a_planted_secret_is_nowhere(
    kind: Any, mode: Any, aimock: Aimock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A-LIFE-5, A-LIFE-6"""
    plugin = redaction(rules=[Rule("project", r"Projekt\s+\w+", 40)], mode=mode)
    places = await seen(kind, plugin, aimock, tmp_path / "pai.db", caplog)
    assert {place: found for place, text in places.items() if (found := traces(text))} == {}
    if mode == "mask":
        assert "Your card is [card], and [project] goes on." in places["deltas"]
        for name in ("email", "iban", "card", "cloud_key", "jwt", "private_key", "project"):
            assert f"[{name}]" in places["state"]
        assert "[ip]" in places["wire"]


@KINDS
async def test_without_the_plugin_it_would_be_found(
    kind: Any, aimock: Aimock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The test above could fail."""
    places = await seen(kind, None, aimock, tmp_path / "pai.db", caplog)
    # What a tool raises unasked is told to nobody.
    said = {*SECRETS} - {BROKEN}
    assert said <= {*traces(places["rows"])}
    assert said <= {*traces(places["files"])}
    assert said - {REPORTED} <= {*traces(places["state"])}
    assert {THOUGHT, SPOKEN, FOUND, OWN} <= {*traces(places["deltas"])}
    assert {TYPED, SPOKEN, ASKED, FOUND, FAILED, OWN} <= {*traces(places["requests"])}
