"""Asking the model beside the step's own call: :class:`Asker`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import attrs

from pai import (
    Message,
    ModelRequest,
    StepFinish,
    StepReset,
    StreamPart,
    SystemMessage,
    TextDelta,
    TextPart,
    Usage,
)
from pai_compaction._strategy import Prompt

__all__ = ("Asker", "CallModel", "close")

CallModel = Callable[[ModelRequest], AsyncIterator[StreamPart]]


class Asker:
    """
    Asks through the layers of a step.

    Args:
        call_model: Makes a call.
        request: The step's request: model, capabilities and metadata are taken from it.
        run_id: The run.

    Attributes:
        spent: What its calls used, where the provider said so.
    """

    __slots__ = ("_call_model", "_request", "_run_id", "spent")

    def __init__(self, call_model: CallModel, request: ModelRequest, run_id: str) -> None:
        self._call_model = call_model
        self._request = request
        self._run_id = run_id
        self.spent: Usage | None = None

    async def __call__(self, prompt: Prompt) -> str:
        """
        Ask for a text.

        Raises:
            ModelError: The model's.
        """
        texts: list[str] = []
        stream = self._call_model(self._asked(prompt))
        try:
            async for part in stream:
                if type(part) is TextDelta:
                    texts.append(part.text)
                elif type(part) is StepReset:
                    texts.clear()
                elif type(part) is StepFinish and part.usage is not None:
                    self.spent = part.usage if self.spent is None else self.spent + part.usage
        finally:
            await close(stream)
        return "".join(texts)

    def _asked(self, prompt: Prompt) -> ModelRequest:
        message = Message(
            "summary-request", "user", (TextPart(prompt.text),), self._run_id, datetime.now(UTC)
        )
        return attrs.evolve(
            self._request,
            model=self._request.model if prompt.model is None else prompt.model,
            instructions=(SystemMessage(prompt.instructions),),
            messages=(message,),
            tools=(),
            provider_tools=(),
            tool_choice=None,
            settings=prompt.settings,
            output=None,
            prompt_cache=None,
            approvals={},
            mid_conversation=None,
        )


async def close(stream: object) -> None:
    """Close a stream that can be closed."""
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        await aclose()
