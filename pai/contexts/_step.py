"""What hooks are handed about a step."""

from __future__ import annotations

from typing import Literal, TypeVar

from pai.contexts._of_run import OfRun
from pai.contexts._read_only import put
from pai.contexts._run import RunContext
from pai.ports import ModelRequest
from pai.protocol import Usage

__all__ = ("StepContext",)

ContextT = TypeVar("ContextT")


class StepContext(OfRun[ContextT]):
    """
    One step of a run: a model call and what came of it.

    Attributes:
        run: The run.
        index: From 0 in each episode.
        kind: ``model``, or ``output`` for a call that only makes the structured output.
        request: What the model will be asked, with all patches so far.
        usage: What the run has used so far.
    """

    __slots__ = ("index", "kind", "request", "usage")

    index: int
    kind: Literal["model", "output"]
    request: ModelRequest
    usage: Usage

    def __init__(
        self,
        run: RunContext[ContextT],
        index: int,
        request: ModelRequest,
        usage: Usage,
        kind: Literal["model", "output"] = "model",
    ) -> None:
        put(self, "run", run)
        put(self, "index", index)
        put(self, "kind", kind)
        put(self, "request", request)
        put(self, "usage", usage)

    def asking(self, request: ModelRequest) -> StepContext[ContextT]:
        """The same step with another request: what an inner layer of a model call is shown."""
        return StepContext(self.run, self.index, request, self.usage, self.kind)
