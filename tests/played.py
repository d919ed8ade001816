"""Plays a run at the outermost door that is still fast, and keeps what can be seen of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anyio
import attrs

from pai import AgentDefinition, Event, RunResult, ThreadHandle, ThreadState, create_pai
from pai.protocol import encode_events


@attrs.define
class Played:
    """
    A run that has ended.

    Attributes:
        result: Its result.
        events: Its events, in order.
        state: Its thread.
        errors: What `on_runtime_error` was told.
    """

    result: RunResult
    events: list[Event]
    state: ThreadState
    errors: list[BaseException]

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    def of(self, type_: str) -> list[Any]:
        return [event for event in self.events if event.type == type_]

    @property
    def seen(self) -> str:
        """Everything that a client can see of it, as text."""
        return f"{encode_events(self.events)}\n{self.state}\n{self.result}"


async def play(
    agent: AgentDefinition[Any],
    content: str | None = "go",
    *,
    plugins: Sequence[object] = (),
    identity: object = None,
    client_data: object = None,
    during: Callable[[Any], Any] | None = None,
    options: Any = None,
) -> Played:
    """
    Play one run of the agent.

    Args:
        agent: The agent.
        content: The user's message; `None` triggers.
        plugins: Plugins left of the agent's own.
        identity: Who it is for.
        client_data: What the client sends along.
        during: Awaited with the run's handle once it is accepted.
        options: Options of the run.
    """
    errors: list[BaseException] = []
    app = create_pai(agents={"a": agent}, plugins=plugins, on_runtime_error=errors.append)
    with anyio.fail_after(20):
        async with app:
            return await play_on(
                app.thread("a", identity=identity), content, errors, client_data, during, options
            )


async def play_on(
    thread: ThreadHandle,
    content: str | None,
    errors: list[BaseException],
    client_data: object = None,
    during: Callable[[Any], Any] | None = None,
    options: Any = None,
) -> Played:
    """Play one run on a thread."""
    if content is None:
        run = await thread.trigger(client_data=client_data, options=options)
    else:
        run = await thread.send(content, client_data=client_data, options=options)
    if during is not None:
        await during(run)
    events = [event async for event in run.events()]
    return Played(await run.result(), events, await thread.state(), errors)
