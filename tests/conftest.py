"""What every test may ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from .aimock import Aimock, AimockMissing, running_aimock
from .postgres import PostgresMissing, fresh_database

settings.register_profile("default", max_examples=50, deadline=None)
# The same examples each time, so that a change is never blamed for an old fault.
settings.register_profile("ci", max_examples=200, deadline=None, derandomize=True)
settings.register_profile(
    "deep", max_examples=10_000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
IN_CI = bool(os.environ.get("CI"))
# A runtime loads what happens to be installed here only in the tests of that.
os.environ["PAI_PLUGINS"] = ""
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if IN_CI else "default"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a server, so that ``-m 'not postgres'`` leaves them out."""
    for item in items:
        for name in ("aimock", "postgres"):
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(name)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Run each async test on both event loops."""
    return str(request.param)


@pytest.fixture(scope="session")
def aimock_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    """Start one mock model server for the session."""
    try:
        with running_aimock(tmp_path_factory.mktemp("aimock")) as server:
            yield server
    except AimockMissing as error:
        missing(error)


@pytest.fixture
def aimock(aimock_server: Aimock) -> Aimock:
    """Give the mock model server, with nothing loaded and an empty journal."""
    aimock_server.reset()
    return aimock_server


@pytest.fixture
def postgres() -> Iterator[str]:
    """Give the URL of an empty PostgreSQL database."""
    try:
        with fresh_database() as url:
            yield url
    except PostgresMissing as error:
        missing(error)


def missing(error: Exception) -> None:
    """Skip on a contributor's machine, fail where everything is meant to be there."""
    if IN_CI:
        pytest.fail(str(error))
    pytest.skip(str(error))
