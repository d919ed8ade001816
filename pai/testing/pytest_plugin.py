"""
The pytest plugin, which is there wherever pai is installed: two fixtures.

``pai_app``
    Makes runtimes for tests: see :class:`AppMaker`.
``pai_store``
    A store's URL; a test that takes it is run once for each of ``memory:`` and a fresh SQLite file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pai.definition import AgentDefinition
    from pai.runtime import Pai

__all__ = ("AppMaker", "pai_app", "pai_store")


class AppMaker:
    """
    Makes runtimes without installed plugins, and fails the test where one reported an error.

    A client is told of an error of a hook, a tool or the model by a code and a sentence; the error
    itself goes to ``on_runtime_error``, so that a test would not see why its run failed.

    Attributes:
        errors: What was reported so far. A test that expects errors looks at them and takes them
            out (``pai_app.errors.clear()``).
    """

    def __init__(self) -> None:
        self.errors: list[BaseException] = []

    def __call__(self, *agents: AgentDefinition[Any], **options: Any) -> Pai:
        """
        A runtime, to be entered with ``async with``.

        Args:
            agents: The agents; each has its own name for a key.
            options: As for :func:`~pai.create_pai`; ``plugins`` is ``()`` unless it is given.
        """
        from pai.runtime import create_pai

        options = {"plugins": (), "on_runtime_error": self.errors.append, **options}
        if agents:
            options["agents"] = {agent.name: agent for agent in agents}
        return create_pai(**options)


@pytest.fixture
def pai_app() -> Iterator[AppMaker]:
    """Makes runtimes for the test: see :class:`AppMaker`."""
    maker = AppMaker()
    yield maker
    if maker.errors:
        raise BaseExceptionGroup("the runtime reported errors", maker.errors)


@pytest.fixture(params=["memory", "sqlite"])
def pai_store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store's URL: in memory, and a fresh SQLite file."""
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"
