"""The span of one call of a model."""

from __future__ import annotations

from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Tracer

from pai import Message, ModelError, StepContext, StepFinish, StreamPart, Usage
from pai_otel import genai_names as names
from pai_otel._content import input_messages, instructions, output_messages
from pai_otel._finish import FINISH_REASONS, error_type
from pai_otel._meters import Meters
from pai_otel._request import model_of, request_attributes
from pai_otel._span import Attributes, OpenSpan
from pai_otel._usage import usage_attributes

__all__ = ("Chat",)


class Chat(OpenSpan):
    """
    One call of a model, from the request to the last part of the answer.

    Where content is recorded, an answer that is whole waits for its step to be committed: only then
    is it known what of it is canonical (A-LIFE-6). The end of the span stays that of the stream.

    Args:
        tracer: Makes the span.
        meters: Take what is measured.
        parent: The context of the run's span.
        step: The step, with the request of this call.
        content: Record content.
    """

    __slots__ = ("_content", "_elapsed", "_first", "_measured", "_meters")

    def __init__(
        self,
        tracer: Tracer,
        meters: Meters,
        parent: Context,
        step: StepContext[Any],
        *,
        content: bool,
    ) -> None:
        request, run = step.request, step.run
        provider, model = model_of(request)
        self._measured: Attributes = {
            names.OPERATION_NAME: names.CHAT,
            names.PROVIDER_NAME: provider,
            names.REQUEST_MODEL: model,
        }
        attributes: Attributes = {
            **self._measured,
            names.CONVERSATION_ID: run.thread_id,
            names.AGENT_NAME: run.agent.name,
            names.STEP_INDEX: step.index,
            **request_attributes(request),
        }
        super().__init__(tracer, f"{names.CHAT} {model}", parent, attributes, SpanKind.CLIENT)
        self._meters = meters
        self._content = content and self.span.is_recording()
        self._first: int | None = None
        self._elapsed: int | None = None
        if self._content:
            if request.instructions:
                text = instructions(request.instructions)
                self.span.set_attribute(names.SYSTEM_INSTRUCTIONS, text)
            self.span.set_attribute(names.INPUT_MESSAGES, input_messages(request.messages))

    def saw_first(self) -> None:
        """The first part has come."""
        self._first = self.elapsed()

    def finish(self, last: StreamPart | None, error: BaseException | None = None) -> bool:
        """
        The stream is over.

        Args:
            last: The last part that came out of it.
            error: What ended it early.

        Returns:
            Whether the span waits for its step.
        """
        elapsed = self._elapsed = self.elapsed()
        told: Attributes = {}
        if self._first is not None:
            seconds = self._first / 1e9
            told[names.RESPONSE_TIME_TO_FIRST_CHUNK] = seconds
            self._meters.first_chunks.record(seconds, self._measured, self.context)
        is_whole = False
        # Whoever reads it may stop after the last part.
        if type(last) is StepFinish and (error is None or type(error) is GeneratorExit):
            is_whole = True
            told[names.RESPONSE_FINISH_REASONS] = (FINISH_REASONS.get(last.reason, last.reason),)
            if last.usage is not None:
                told |= usage_attributes(last.usage)
                self._count(last.usage)
        else:
            told[names.RESPONSE_FINISH_REASONS] = ("error",)
            kind = "incomplete_stream" if error is None else error_type(error)
            self._measured[names.ERROR_TYPE] = kind
            # A model's error is free of content; the text of any other may hold anything.
            has_text = self._content and isinstance(error, ModelError)
            self.fail(kind, str(error) if has_text else None)
        self.span.set_attributes(told)
        self._meters.calls.record(elapsed / 1e9, self._measured, self.context)
        if is_whole and self._content:
            return True
        self.end(elapsed)
        return False

    def commit(self, message: Message, reason: str) -> None:
        """The step it waited for is committed, with this message."""
        self.span.set_attribute(names.OUTPUT_MESSAGES, output_messages(message, reason))
        self.let_go()

    def let_go(self) -> None:
        """Wait no longer."""
        self.end(self._elapsed)

    def _count(self, usage: Usage) -> None:
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            measured = {**self._measured, names.TOKEN_TYPE: kind}
            self._meters.tokens.record(tokens, measured, self.context)
