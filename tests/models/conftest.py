"""One raw server for the tests of drivers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .edge_server import EdgeServer, edge_server


@pytest.fixture(scope="session")
def edge_session() -> Iterator[EdgeServer]:
    with edge_server() as server:
        yield server


@pytest.fixture
def edge(edge_session: EdgeServer, monkeypatch: pytest.MonkeyPatch) -> EdgeServer:
    """The server with nothing to play, and no key or address in the environment."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)
    edge_session.replies.clear()
    edge_session.requests.clear()
    return edge_session
