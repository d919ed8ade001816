"""``pai chat``: a conversation on a terminal or in a pipe."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import anyio.to_thread
import attrs

from pai.cli._builtin import builtin_agent
from pai.cli._choice import Chosen
from pai.cli._load import load_agent
from pai.cli._plugins import warn
from pai.cli._show import Screen
from pai.definition import AgentDefinition, ModelSelection
from pai.errors import DefinitionError, Fault, PaiError, ThreadNotFound
from pai.models import resolve_model
from pai.ports import ModelDriver
from pai.protocol import RunFinished
from pai.runtime import ThreadHandle, create_agent_runtime

__all__ = ("run_chat",)


def run_chat(
    target: str | None,
    prompt: str | None,
    *,
    model: str | None,
    thread: str,
    db: str,
    plugins: Chosen,
) -> int:
    """
    Talk, and return the exit code: 0 if every run completed.

    Raises:
        PaiError: Something is wrong before anything was said; nothing was written.
    """
    agent = load_agent(target) if target is not None else builtin_agent(model or "demo")
    if model is not None and target is not None:
        agent = attrs.evolve(agent, model=model)
    _check_model(agent)
    if prompt == "-":
        prompt = sys.stdin.read().rstrip("\n")
    if prompt is not None and not prompt.strip():
        raise DefinitionError([Fault("prompt", "is empty")], subject="chat")
    return anyio.run(_chat, agent, prompt, thread, db, plugins)


def _check_model(agent: AgentDefinition[Any]) -> None:
    """A model that cannot work is found before anything is written."""
    source = agent.model
    if isinstance(source, ModelSelection):
        source = source.model
    if isinstance(source, (str, ModelDriver)):
        check = getattr(resolve_model(source), "check", None)
        if check is not None:
            check()


async def _chat(
    agent: AgentDefinition[Any], prompt: str | None, thread_id: str, db: str, plugins: Chosen
) -> int:
    errors: list[BaseException] = []
    app = create_agent_runtime(
        agent=agent, store=f"sqlite:///{db}", plugins=plugins, on_runtime_error=errors.append
    )
    warn(app.plugins)
    screen = Screen(sys.stdout)
    async with app:
        errors.clear()  # what is broken was said
        thread = app.thread(agent.name, thread_id=thread_id)
        if prompt is not None:
            return await _turn(thread, prompt, screen, errors)
        failed = 0
        person = sys.stdin.isatty() and sys.stdout.isatty()
        if person:
            print(f"{agent.name}, thread {thread_id!r} in {db}; end with Ctrl-D")
        while True:
            line = await anyio.to_thread.run_sync(_read, person, abandon_on_cancel=True)
            if line is None:
                return failed
            if line.strip():
                failed = max(failed, await _turn(thread, line, screen, errors))


def _read(person: bool) -> str | None:
    """A line of the person, or of the pipe; ``None`` at its end."""
    try:
        return input("> " if person else "")
    except EOFError:
        if person:
            print()
        return None


async def _turn(
    thread: ThreadHandle, prompt: str, screen: Screen, errors: list[BaseException]
) -> int:
    """One turn; its exit code."""
    try:
        run = await thread.send(prompt)
    except ThreadNotFound:
        raise ThreadNotFound(
            f"{thread.id} (it belongs to another agent: choose another with --thread)"
        ) from None
    except PaiError as error:
        if not sys.stdin.isatty():
            raise
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    finished: RunFinished | None = None
    try:
        async for event in run.events():
            screen.show(event)
            if isinstance(event, RunFinished):
                finished = event
    except anyio.get_cancelled_exc_class():
        with anyio.CancelScope(shield=True):
            await run.cancel("interrupted at the terminal")
            await run.result()
        screen.end()
        raise
    screen.end()
    if finished is not None and finished.status == "completed":
        return 0
    _explain(finished, errors)
    return 1


def _explain(finished: RunFinished | None, errors: list[BaseException]) -> None:
    """Say why a run did not complete: the person here may know, a remote client may not."""
    error = errors[-1] if errors else None
    if finished is not None and finished.status == "failed" and error is not None:
        code = getattr(error, "code", None)
        label = type(error).__name__ + (f" [{code}]" if code else "")
        text = str(error)
        cause = error.__cause__
        if cause is not None and not isinstance(cause, PaiError) and not hasattr(error, "provider"):
            text += f" ({type(cause).__name__}: {cause})"
        print(f"{label}: {text}", file=sys.stderr)
    elif finished is not None:
        print(f"{finished.status}: {finished.reason or 'no reason given'}", file=sys.stderr)
    errors.clear()
