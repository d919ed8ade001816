"""The demo's driver: it finds an answer by simple rules, then streams it as a model would."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator
from typing import final

from pai.models._demo.answer import Answer, Call, find_answer
from pai.ports import ModelProfile, ModelRequest
from pai.protocol import (
    StepFinish,
    StreamPart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    Usage,
    new_id,
)
from pai.schema import dump_json

__all__ = ("DemoDriver",)

request_log = logging.getLogger("pai.request")

_WORD = re.compile(r"\S+\s*|\s+")
_AT_ONCE = 4


@final
class DemoDriver:
    """
    A model for a first run, for docs and for tests: no network, no key, always the same answer.

    It works out sums with a tool that fits, calls any tool named in plain words, remembers what was
    asked, quotes what was retrieved, and otherwise says what it is.
    """

    @property
    def provider(self) -> str:
        """``"demo"``."""
        return "demo"

    @property
    def name(self) -> str:
        """``"demo"``."""
        return "demo"

    @property
    def profile(self) -> ModelProfile:
        """It has no reasoning, and gives structured output in a call of its own."""
        return ModelProfile(reasoning=("none",))

    def warm(self) -> None:
        """Nothing has to be imported ahead."""

    def check(self) -> None:
        """Nothing can be missing."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[StreamPart], None]:
        """Answer; see :class:`pai.ports.ModelDriver`."""
        from anyio.lowlevel import checkpoint

        request_log.debug("demo: messages=%d tools=%d", len(request.messages), len(request.tools))
        answer = find_answer(request)
        if answer.text:
            yield [TextStart("t0")]
            words = _WORD.findall(answer.text)
            for at in range(0, len(words), _AT_ONCE):
                await checkpoint()
                yield [TextDelta("t0", word) for word in words[at : at + _AT_ONCE]]
            yield [TextEnd("t0")]
        for call in answer.calls:
            await checkpoint()
            yield _call(call)
        usage = _usage(request, answer)
        yield [StepFinish("tool-calls" if answer.calls else "stop", usage)]


def _call(call: Call) -> list[StreamPart]:
    call_id = f"call_{new_id()}"
    return [
        ToolInputStart(call_id, call.tool),
        ToolInputDelta(call_id, dump_json(call.input)),
        ToolCall(call_id, call.tool, call.input),
    ]


def _usage(request: ModelRequest, answer: Answer) -> Usage:
    """An estimate: a token a word."""
    read = sum(len(each.content.split()) for each in request.instructions)
    read += sum(len(message.text.split()) for message in request.messages)
    written = len(answer.text.split())
    written += sum(1 + len(call.input) for call in answer.calls)
    return Usage(input_tokens=read, output_tokens=written, total_tokens=read + written)
