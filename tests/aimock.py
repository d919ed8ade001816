"""aimock, a mock model server on Node, as an object of a test."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any
from urllib.request import Request, urlopen

CLI = Path(__file__).parent / "node/node_modules/@copilotkit/aimock/dist/cli.js"
LISTENING = "listening on "


class AimockMissing(Exception):
    """Node or the package is not installed; the text says what to do."""


class Aimock:
    """
    A running server: load fixtures, point a model at `url`, read what it was asked.

    Args:
        origin: Where it listens, ``"http://127.0.0.1:PORT"``.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.url = f"{origin}/v1"

    def load(self, fixtures: Path | Iterable[Mapping[str, Any]]) -> None:
        """Add fixtures, of a file or given as values; the first that matches a request answers."""
        given = (
            json.loads(fixtures.read_text("utf-8"))["fixtures"]
            if isinstance(fixtures, Path)
            else list(fixtures)
        )
        self._control("POST", "/__aimock/fixtures", {"fixtures": given})

    def fail_next(self, status: int, body: Mapping[str, Any]) -> None:
        """Answer the next request, whatever it asks, with an error."""
        self._control("POST", "/__aimock/error", {"status": status, "body": body})

    def journal(self) -> list[dict[str, Any]]:
        """Return every request so far: method, path, headers, body, response."""
        entries = self._control("GET", "/__aimock/journal")
        assert isinstance(entries, list)
        return entries

    def reset(self) -> None:
        """Forget fixtures, their counters and the journal."""
        self._control("POST", "/__aimock/reset")

    def _control(self, method: str, path: str, body: object = None) -> object:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.origin + path, data, method=method)
        with urlopen(request, timeout=10) as response:
            return json.load(response)


@contextlib.contextmanager
def running_aimock(folder: Path) -> Iterator[Aimock]:
    """
    Start a server on a free port and stop it at the end.

    Args:
        folder: An empty folder, from which the server loads no fixtures.

    Raises:
        AimockMissing: Node or the package is not installed.
    """
    node = shutil.which("node")
    if node is None or not CLI.exists():
        raise AimockMissing(
            "aimock is not installed: `nox -s tests` installs it where node and npm are found, "
            "and so does `npm ci --prefix tests/node`"
        )
    process = subprocess.Popen(
        [node, CLI, "--port=0", f"--fixtures={folder}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as output:
        log: deque[str] = deque(maxlen=50)
        try:
            origin = next((line for line in _lines(output, log) if LISTENING in line), None)
            if origin is None:
                raise RuntimeError(f"aimock did not start: {''.join(log)}")
            # A pipe that nobody reads would stop the server once it is full.
            drain = threading.Thread(target=deque, args=(_lines(output, log), 0), daemon=True)
            drain.start()
            server = Aimock(origin.partition(LISTENING)[2].strip())
            server._control("GET", "/health")
            yield server
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        drain.join()


def _lines(output: IO[str], log: deque[str]) -> Iterator[str]:
    for line in output:
        log.append(line)
        yield line
