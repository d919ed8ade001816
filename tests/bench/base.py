"""
What an adapter must offer: a module with a class ``Adapter(Base)``.

`Base.agent` returns ``run(text, thread=None)``, an async generator of text deltas.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

SYSTEM = "You are a calculator. Use the tool."
QUESTION = "add 2 and 3"
KEY = "sk-bench"
SCHEMA = {
    "name": "add",
    "description": "Add two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}

Run = Callable[..., AsyncIterator[str]]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Base:
    """
    One way to run an agent.

    Args:
        url: Where the fake model server is, ``"http://127.0.0.1:PORT/v1"``.
    """

    packages: tuple[str, ...] = ()
    """Distributions whose versions are worth reporting."""
    imports: str = ""
    """What a user imports."""
    hook_kinds: tuple[str, ...] = ()
    """Of ``"before"`` (each model call), ``"wrap"`` (around it), ``"run"`` (before each run)."""
    store: str | None = None
    """What keeps threads when a database is given."""
    history: bool = True
    """Whether threads are kept at all."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def agent(
        self,
        model: str,
        tools: bool = True,
        hooks: tuple[str, int] | None = None,
        db: str | None = None,
    ) -> Run:
        """
        Prepare an agent.

        Args:
            model: A name that the fake server understands.
            tools: Whether it has its one tool, ``add(a, b)``.
            hooks: A kind of `hook_kinds`, and how many no-op hooks of it.
            db: The path of a database file; without one, threads live in memory.

        Returns:
            ``run(text, thread=None)``; without a thread, a fresh conversation.
        """
        raise NotImplementedError

    async def grow(self, run: Run, thread: str, turns: int) -> None:
        """
        Give a new thread so many turns, each of `QUESTION` and its answer.

        Args:
            run: What `agent` returned.
            thread: The thread's id.
            turns: How many.
        """
        for _ in range(turns):
            async for _ in run(QUESTION, thread):
                pass

    def drop(self) -> None:
        """Forget the conversations kept in memory."""
