"""``pai chat`` as a person meets it: a process, its output and its exit code."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

AGENT = '''
from pai import define_agent, tool

@tool
def shout(ctx, text: str) -> str:
    """Say it louder."""
    return text.upper()

agent = define_agent(name="shouter", model="demo", tools={"shout": shout})
'''


def pai(
    folder: Path, *arguments: str, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    return subprocess.run(
        [sys.executable, "-m", "pai", *arguments],
        cwd=folder,
        input=stdin,
        env=env | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_second_process_knows_the_first(tmp_path: Path) -> None:
    first = pai(tmp_path, "chat", "What is 2 + 3?")
    assert (first.returncode, first.stderr) == (0, "")
    assert "add(a=2, b=3)" in first.stdout
    assert "2 + 3 = 5" in first.stdout
    second = pai(tmp_path, "chat", "What did I ask before?")
    assert second.returncode == 0
    assert "What is 2 + 3?" in second.stdout
    assert (tmp_path / "pai.db").exists()
    # Another thread knows nothing of it.
    other = pai(tmp_path, "chat", "--thread", "other", "What did I ask before?")
    assert "2 + 3" not in other.stdout


def test_lines_of_a_pipe_are_turns_and_a_dash_reads_all(tmp_path: Path) -> None:
    piped = pai(tmp_path, "chat", stdin="add 4 and 6\n\nadd 1 and 2\n")
    assert piped.returncode == 0
    assert "4 + 6 = 10" in piped.stdout
    assert "1 + 2 = 3" in piped.stdout
    assert "\x1b" not in piped.stdout
    assert "> " not in piped.stdout.replace("-> ", "")
    whole = pai(tmp_path, "chat", "-", "--thread", "w", stdin="add 4\nand 6\n")
    assert whole.returncode == 0
    with sqlite3.connect(tmp_path / "pai.db") as db:
        parts = db.execute("select parts from messages where thread_id = 'w'").fetchall()
    assert any("add 4\\nand 6" in row[0] for row in parts)


def test_an_agent_of_a_file_or_a_module(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(AGENT)
    for target in ("mine.py", "mine:agent", "mine.py:agent"):
        answer = pai(tmp_path, "chat", target, "use shout text=hello")
        assert answer.returncode == 0, answer.stderr
        assert "HELLO" in answer.stdout


def test_a_thread_of_another_agent_is_not_found(tmp_path: Path) -> None:
    """A-RUN-5."""
    (tmp_path / "mine.py").write_text(AGENT)
    assert pai(tmp_path, "chat", "What is 1 + 1?").returncode == 0
    other = pai(tmp_path, "chat", "mine.py", "use shout text=hello")
    assert other.returncode == 1
    assert "ThreadNotFound" in other.stderr
    assert "--thread" in other.stderr


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("missing.py", "no such file"),
        ("nowhere:agent", "ModuleNotFoundError"),
        ("broken.py", "13 faults"),
        ("raises.py", "ZeroDivisionError"),
        ("empty.py", "defines no agent"),
    ],
)
def test_a_wrong_definition_is_said_and_nothing_is_written(
    tmp_path: Path, target: str, expected: str
) -> None:
    (tmp_path / "raises.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text(
        "from pai import define_agent, ProviderTool\n"
        "agent = define_agent(name='1 bad', model='nonsense', version='', instructions=[1],\n"
        "    max_steps=0, tools={'a b': 1, 'c d': 2}, ui_data={'9': int},\n"
        "    provider_tools={'x': 1}, runtime_context=3, commands={'c': 1})\n"
    )
    answer = pai(tmp_path, "chat", target, "hello")
    assert answer.returncode == 1
    assert expected in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "pai.db").exists()


def test_a_missing_key_names_its_variable_and_nothing_is_written(tmp_path: Path) -> None:
    answer = pai(tmp_path, "chat", "--model", "openai:gpt-5.2", "hello")
    assert answer.returncode == 1
    assert answer.stderr.startswith("MissingCredential: ")
    assert "OPENAI_API_KEY" in answer.stderr
    assert not (tmp_path / "pai.db").exists()


@pytest.mark.parametrize("model", ["nobody:model", "openai:", "gpt-5.2"])
def test_a_name_of_no_model(tmp_path: Path, model: str) -> None:
    answer = pai(tmp_path, "chat", "--model", model, "hello")
    assert answer.returncode == 1
    assert answer.stderr.startswith("DefinitionError: ")
    assert not (tmp_path / "pai.db").exists()


def test_a_prompt_of_ten_megabytes(tmp_path: Path) -> None:
    """R-39: a clear error, and nothing of it is written."""
    answer = pai(tmp_path, "chat", "-", stdin="a" * 10_000_000)
    assert answer.returncode == 1
    assert answer.stderr.startswith("InvalidInput: ")
    assert len(answer.stderr) < 500
    with sqlite3.connect(tmp_path / "pai.db") as db:
        for table in ("threads", "messages", "runs", "events"):
            assert db.execute(f"select count(*) from {table}").fetchone() == (0,)


@contextmanager
def answering(status: int, body: object, headers: dict[str, str]) -> Iterator[str]:
    """A server that gives one answer to everything."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            content = json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


CASES = {
    401: ("ModelError", {"error": {"message": "Incorrect key: sk-abcdef0123456789", "code": "k"}}),
    429: ("RateLimited", {"error": {"message": "Slow down", "code": "rate_limit_exceeded"}}),
    500: ("ModelError", {"error": {"message": "The server had an error"}}),
    404: ("ModelError", {"error": {"message": "no such model", "code": "model_not_found"}}),
}


@pytest.mark.parametrize("provider", ["openai", "openai-chat"])
@pytest.mark.parametrize("status", CASES)
def test_what_a_server_refuses(tmp_path: Path, status: int, provider: str) -> None:
    kind, body = CASES[status]
    with answering(status, body, {"retry-after": "3"}) as url:
        answer = pai(
            tmp_path,
            "chat",
            "--model",
            f"{provider}:some-model",
            "hello",
            OPENAI_BASE_URL=url,
            OPENAI_API_KEY="sk-planted-0123456789abcdef",
        )
    assert answer.returncode == 1
    assert answer.stderr.startswith(kind)
    assert len(answer.stderr.splitlines()) == 1
    assert "sk-planted" not in answer.stderr + answer.stdout
    assert "sk-abcdef0123456789" not in answer.stderr
    _failed_whole(tmp_path)


def test_a_refused_connection(tmp_path: Path) -> None:
    answer = pai(
        tmp_path,
        "chat",
        "--model",
        "openai-chat:m",
        "hello",
        OPENAI_BASE_URL="http://127.0.0.1:9/v1",
    )
    assert answer.returncode == 1
    assert answer.stderr.startswith("ModelError [connection_error]: ")
    assert "127.0.0.1:9" in answer.stderr
    _failed_whole(tmp_path)


def _failed_whole(folder: Path) -> None:
    """The turn is there as what it was: one message, one failed run, and no answer half written."""
    with sqlite3.connect(folder / "pai.db") as db:
        assert db.execute("select status from runs").fetchall() == [("failed",)]
        assert db.execute("select role from messages").fetchall() == [("user",)]
        row = db.execute("select group_concat(body) from events").fetchone()
    assert row[0].count('"run-finished"') == 1
    assert "sk-planted" not in row[0]


def test_manifest_contract_check_and_hooks(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(AGENT)
    manifest = pai(tmp_path, "manifest", "mine.py")
    assert json.loads(manifest.stdout)["tools"] == {"shout": {"description": "Say it louder."}}
    contract = pai(tmp_path, "contract", "mine.py", "--public")
    assert "input" in json.loads(contract.stdout)["tools"]["shout"]
    assert pai(tmp_path, "check", "mine.py").returncode == 0
    assert pai(tmp_path, "hooks", "mine.py").stdout == "shouter has no hooks\n"
