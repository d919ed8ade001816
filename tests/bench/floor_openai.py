"""The floor: a hand-written agent loop on AsyncOpenAI, as its documentation shows it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from openai import AsyncOpenAI

from .base import KEY, SCHEMA, SYSTEM, Base, Run, add


class Adapter(Base):
    packages = ("openai", "pydantic", "httpx2")
    imports = "from openai import AsyncOpenAI"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.threads: dict[str, list[Any]] = {}

    async def agent(
        self,
        model: str,
        tools: bool = True,
        hooks: tuple[str, int] | None = None,
        db: str | None = None,
    ) -> Run:
        client = AsyncOpenAI(base_url=self.url, api_key=KEY)
        options: dict[str, Any] = {}
        if tools:
            options["tools"] = [{"type": "function", "function": SCHEMA}]

        async def run(text: str, thread: str | None = None) -> AsyncIterator[str]:
            messages = [] if thread is None else self.threads.setdefault(thread, [])
            if not messages:
                messages.append({"role": "system", "content": SYSTEM})
            messages.append({"role": "user", "content": text})
            while True:
                call: Any = None
                said: list[str] = []
                stream = await client.chat.completions.create(
                    model=model, messages=messages, stream=True, **options
                )
                async for event in stream:
                    if not event.choices:
                        continue
                    delta = event.choices[0].delta
                    if delta.content:
                        said.append(delta.content)
                        yield delta.content
                    for piece in delta.tool_calls or ():
                        if call is None:
                            function = {"name": piece.function.name, "arguments": ""}
                            call = {"id": piece.id, "type": "function", "function": function}
                        call["function"]["arguments"] += piece.function.arguments
                if call is None:
                    messages.append({"role": "assistant", "content": "".join(said)})
                    return
                result = add(**json.loads(call["function"]["arguments"]))
                messages.append({"role": "assistant", "tool_calls": [call]})
                messages.append(
                    {"role": "tool", "tool_call_id": call["id"], "content": str(result)}
                )

        return run

    async def grow(self, run: Run, thread: str, turns: int) -> None:
        await super().grow(run, thread, 1)
        messages = self.threads[thread]
        messages += messages[1:] * (turns - 1)

    def drop(self) -> None:
        self.threads.clear()
