"""``pai threads``: what is in a store, seen as its agents see it."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable

import anyio
import attrs

from pai.cli._plugins import warn
from pai.errors import DefinitionError, Fault
from pai.protocol import TextPart, ThreadState, ToolCallPart
from pai.runtime import Pai, ThreadHandle

__all__ = ("Of", "delete_thread", "list_threads", "show_thread")


@attrs.frozen
class Of:
    """
    Whose threads.

    Args:
        agent: The agent's key; ``None``: the only one there is.
        identity: As JSON; ``None``: there is none.
    """

    agent: str | None = None
    identity: str | None = None

    def key(self, app: Pai) -> str:
        if self.agent is not None:
            return self.agent
        if len(app.agents) > 1:
            message = f"which one? There are {', '.join(app.agents)}"
            raise DefinitionError([Fault("agent", message)], subject="threads")
        return app.agents[0]

    def value(self) -> object:
        if self.identity is None:
            return None
        try:
            return json.loads(self.identity)
        except ValueError:
            fault = Fault("identity", 'expected JSON, such as \'{"user_id": "u1"}\'')
            raise DefinitionError([fault], subject="threads") from None


def list_threads(app: Pai, of: Of, *, limit: int, after: str | None) -> None:
    """Print a page of threads, the newest first, and the cursor of the next one."""
    key, identity = of.key(app), of.value()

    async def listed() -> None:
        page = await app.threads(key, identity=identity, limit=limit, after=after)
        for thread in page.items:
            moved = thread.updated_at.astimezone().isoformat(" ", "seconds")
            print("  ".join([thread.id, moved, _line(thread.title or "")]).rstrip())
        if page.after is not None:
            print(f"more: --after {page.after}", file=sys.stderr)

    _with(app, listed)


def show_thread(app: Pai, thread_id: str, of: Of) -> None:
    """
    Print a thread: its messages and its runs.

    Raises:
        ThreadNotFound: There is no such thread in this partition.
    """
    thread = _thread(app, thread_id, of)

    async def shown() -> None:
        _print(await thread.state())

    _with(app, shown)


def delete_thread(app: Pai, thread_id: str, of: Of, *, yes: bool) -> None:
    """
    Delete a thread and all that is of it, once a person has agreed (R-16).

    Raises:
        DefinitionError: There is nobody to ask, and *yes* is not set.
        ThreadNotFound: There is no such thread in this partition.
    """
    thread = _thread(app, thread_id, of)
    if not yes:
        if not sys.stdin.isatty():
            fault = Fault("yes", "nobody can be asked here: say --yes")
            raise DefinitionError([fault], subject="threads")
        if input(f"Delete thread {thread_id!r} with all that is in it? [y/N] ").lower() != "y":
            return

    warn(app.plugins)
    _with(app, thread.delete)
    print(f"deleted {thread_id}")


def _thread(app: Pai, thread_id: str, of: Of) -> ThreadHandle:
    return app.thread(of.key(app), identity=of.value(), thread_id=thread_id)


def _with(app: Pai, work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        async with app.working(False):
            await work()

    anyio.run(main)


def _print(state: ThreadState) -> None:
    for message in state.messages:
        for part in message.parts:
            if isinstance(part, TextPart):
                print(f"{message.role}: {_safe(part.text)}")
            elif isinstance(part, ToolCallPart):
                told = part.error if part.outcome != "completed" else part.output
                ended = f"{part.outcome}: {_line(_text(told))}" if part.outcome else "open"
                print(f"  {part.tool}({_line(_text(part.input))}) {ended}")
            else:
                print(f"  [{part.type}]")
    for run in state.runs:
        began = run.created_at.astimezone().isoformat(" ", "seconds")
        why = run.reason or (run.error or {}).get("code")
        print(f"run {run.id}  {began}  {run.status}{f': {_line(str(why))}' if why else ''}")


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _line(text: str) -> str:
    line = " ".join(_safe(text).split())
    return line if len(line) <= 200 else line[:197] + "..."


def _safe(text: str) -> str:
    """What strangers wrote moves no cursor."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text)  # fmt: skip
