"""The servers that tests talk to are what their fixtures say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from .aimock import Aimock
from .postgres import _with_database

SCRIPTS = sorted((Path(__file__).parent / "conformance/tanstack-tools").glob("*.json"))


def ask(aimock: Aimock, text: str) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    request = Request(
        f"{aimock.url}/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    with urlopen(request, timeout=10) as response:
        return json.load(response)["choices"][0]["message"]


def test_aimock_answers_from_what_a_test_loaded_and_keeps_a_journal(aimock):
    aimock.load([{"match": {"userMessage": "weather"}, "response": {"content": "Sunny."}}])
    assert ask(aimock, "the weather?")["content"] == "Sunny."
    [entry] = aimock.journal()
    assert entry["path"] == "/v1/chat/completions"
    assert entry["body"]["messages"][0]["content"] == "the weather?"


def test_aimock_forgets_what_the_test_before_loaded(aimock):
    aimock.load([{"match": {"userMessage": "weather"}, "response": {"content": "Sunny."}}])
    aimock.reset()
    assert aimock.journal() == []
    with pytest.raises(HTTPError) as caught:
        ask(aimock, "the weather?")
    caught.value.close()
    assert caught.value.code == 404


def test_aimock_fails_once_when_asked(aimock):
    aimock.load([{"match": {"userMessage": "weather"}, "response": {"content": "Sunny."}}])
    aimock.fail_next(429, {"error": {"message": "Slow down."}})
    with pytest.raises(HTTPError) as caught:
        ask(aimock, "the weather?")
    caught.value.close()
    assert caught.value.code == 429
    assert ask(aimock, "the weather?")["content"] == "Sunny."


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_aimock_takes_every_copied_script(aimock, script):
    aimock.load(script)


def test_a_postgres_database_is_fresh(postgres):
    import psycopg

    with psycopg.connect(postgres) as connection:
        rows = connection.execute(
            "select count(*) from information_schema.tables where table_schema = 'public'"
        ).fetchall()
    assert rows == [(0,)]


@pytest.mark.parametrize(
    ("server", "database"),
    [
        ("postgresql:///postgres", "postgresql:///x"),
        ("postgresql:///postgres?host=/tmp", "postgresql:///x?host=/tmp"),
        ("postgresql://u:p@localhost:5433/postgres", "postgresql://u:p@localhost:5433/x"),
    ],
)
def test_the_url_of_a_database_keeps_its_server(server, database):
    assert _with_database(server, "x") == database
