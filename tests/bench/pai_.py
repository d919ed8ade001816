"""
pai with its store in memory.

A conversation without a thread gets a fresh id and stays in the store, as it would for a user,
until `Adapter.drop`. ``BENCH_THREAD_TOOL=1`` runs the tool in a worker thread, where pai puts a
plain function that does not say ``inline=True``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

from openai import AsyncOpenAI

from pai import AgentDefinition, compose_lifecycle, create_pai, define_agent, hookimpl, tool
from pai.models import OpenAIChat

from .base import KEY, SYSTEM, Base


@tool(inline=not os.environ.get("BENCH_THREAD_TOOL"))
def add(ctx: Any, a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Before:
    @hookimpl
    async def prepare_model_step(self, step: Any) -> None:
        return None


class Wrap:
    @hookimpl
    def wrap_model_call(self, step: Any, call_model: Any) -> Any:
        return call_model(step.request)


class Prepare:
    @hookimpl
    async def prepare_run(self, run: Any) -> None:
        return None


HOOKS: dict[str, type] = {"before": Before, "wrap": Wrap, "run": Prepare}


class Adapter(Base):
    packages = ("pai-core", "openai", "httpx2", "sqlalchemy", "pysqlite3")
    imports = "from pai import define_agent, hookimpl, tool"
    hook_kinds = tuple(HOOKS)
    store = "sqlite"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.stack = AsyncExitStack()
        self.dropped = False

    def store_url(self, db: str | None) -> str:
        return f"sqlite:///{db}" if db else "memory:"

    async def agent(
        self,
        model: str,
        tools: bool = True,
        hooks: tuple[str, int] | None = None,
        db: str | None = None,
    ) -> Any:
        if self.dropped:
            await self.stack.aclose()
            self.dropped = False
        kind, number = hooks or ("before", 0)
        # A client for each agent, as in the other adapters: else a case would look through the idle
        # connections that an earlier one left in the pool that agents of one address share.
        client = AsyncOpenAI(base_url=self.url, api_key=KEY, max_retries=0)
        agent: AgentDefinition[Any] = define_agent(
            name="bench",
            model=OpenAIChat(model, client=client),
            instructions=SYSTEM,
            tools={"add": add} if tools else {},
            lifecycle=compose_lifecycle(*(HOOKS[kind]() for _ in range(number))),
        )
        app = await self.stack.enter_async_context(
            create_pai(agents={"bench": agent}, store=self.store_url(db), plugins=())
        )

        async def run(text: str, thread: str | None = None) -> AsyncIterator[str]:
            handle = await app.thread("bench", thread_id=thread).send(text)
            async for delta in handle.text():
                yield delta

        return run

    def drop(self) -> None:
        # Closing is async: the next agent does it, in the task that opened what is closed.
        self.dropped = True
