"""
How lean a loop can be that keeps the openai client's transport: auth, timeouts, pool.

``client.post()`` takes an untransformed body, and a stream class yields plain dicts.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from openai import AsyncOpenAI, AsyncStream

from .base import KEY, SCHEMA, SYSTEM, Base, Run, add


class Dicts(AsyncStream[Any]):
    """The events of a stream as they come, with no typed chunk made of them."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        rest = b""
        async for data in self.response.aiter_bytes():
            *events, rest = (rest + data).split(b"\n\n")
            for event in events:
                if event != b"data: [DONE]":
                    yield json.loads(event.removeprefix(b"data: "))


class Adapter(Base):
    packages = ("openai", "httpx2")
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
                body = {"model": model, "messages": messages, "stream": True, **options}
                stream = await client.post(
                    "/chat/completions", body=body, cast_to=object, stream=True, stream_cls=Dicts
                )
                async for event in stream:
                    if not event["choices"]:
                        continue
                    delta = event["choices"][0]["delta"]
                    if content := delta.get("content"):
                        said.append(content)
                        yield content
                    for piece in delta.get("tool_calls") or ():
                        if call is None:
                            function = {"name": piece["function"]["name"], "arguments": ""}
                            call = {"id": piece["id"], "type": "function", "function": function}
                        call["function"]["arguments"] += piece["function"]["arguments"]
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
