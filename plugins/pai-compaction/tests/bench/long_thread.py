"""
What a step costs on a long thread: the time from the plugin's hook to the call of the model.

Run it as ``python plugins/pai-compaction/tests/bench/long_thread.py [messages]``.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from statistics import median
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import anyio
from pai_compaction import Compaction, clear_tool_outputs, compaction, summarise, window

from pai import Message, ModelRequest, TextPart, ToolCallPart
from pai.testing import Finish, ScriptedModel

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ROUNDS = 7


def thread(length: int) -> list[Message]:
    """A user's message, a call with a longer output, an answer, and so on."""
    made: list[Message] = []
    for index in range(length):
        kind = index % 3
        text = f"{index} " + "Some words of a conversation. " * 8
        parts: tuple[Any, ...] = (TextPart(text),)
        if kind == 1:
            found: Any = [{"id": n, "name": "thing", "price": n * 1.5} for n in range(25)]
            parts = (ToolCallPart(f"c{index}", "search", {"q": text[:30]}, "completed", found),)
        role: Any = "user" if kind == 0 else "assistant"
        made.append(Message(f"m{index}", role, parts, "r", NOW))
    return made


class Records:
    """Rows in memory."""

    def __init__(self) -> None:
        self._rows: dict[str, object] = {}

    async def get(self, key: str) -> object:
        return self._rows.get(key)

    async def put(self, key: str, value: object) -> None:
        self._rows[key] = value


class Run:
    """A run of a plugin, one step after the other."""

    def __init__(self, plugin: Compaction, records: Any) -> None:
        self._plugin, self._records = plugin, records
        self._state: dict[str, object] = {}
        self._model = ScriptedModel(self._turn)
        self._at = 0.0
        self.sent = 0

    def _turn(self, request: ModelRequest) -> Any:
        self._at = perf_counter()
        if request.messages[0].id == "summary-request":
            return ["They talked about things. " * 40, Finish("stop")]
        self.sent = len(request.messages)
        return Finish("stop")

    async def step(self, messages: list[Message]) -> float:
        """Milliseconds until the model is asked."""
        request = ModelRequest(self._model, tuple(messages))
        run = SimpleNamespace(id="r", emit=lambda name, value: None)
        step: Any = SimpleNamespace(run=run, request=request)
        begin = perf_counter()
        stream: AsyncIterator[object] = self._plugin.wrap_model_call(
            step, self._model.stream, self._state, self._records
        )
        async for _ in stream:
            pass
        return (self._at - begin) * 1_000


async def measure(make: Callable[[], Compaction], messages: list[Message]) -> list[str]:
    """The first step, the next ones of the same run, and the first of the next run."""
    firsts, nexts, laters, sent = [], [], [], 0
    for _ in range(ROUNDS):
        plugin, records = make(), Records()
        run = Run(plugin, records)
        firsts.append(await run.step(messages[:-10]))
        nexts += [await run.step(messages[: len(messages) - 10 + n]) for n in range(1, 11)]
        sent = run.sent
        laters.append(await Run(plugin, records).step(messages))
    return [f"{median(each):10.3f}" for each in (firsts, nexts, laters)] + [f"{sent:8d}"]


async def main(length: int) -> None:
    messages = thread(length)
    cases: dict[str, Callable[[], Compaction]] = {
        "no budget: stands aside": compaction,
        "budget that suffices": lambda: compaction(10**9),
        "clear_tool_outputs": lambda: compaction(200_000, strategies=[clear_tool_outputs()]),
        "window": lambda: compaction(50_000, strategies=[window()]),
        "summarise": lambda: compaction(50_000, strategies=[summarise()]),
        "all three": lambda: compaction(50_000),
    }
    lines = [
        f"{length} messages; milliseconds, median of {ROUNDS}",
        f"{'':26}{'first step':>10}{'next step':>10}{'next run':>10}{'sent':>8}",
    ]
    for name, make in cases.items():
        lines.append(f"{name:26}" + "".join(await measure(make, messages)))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
