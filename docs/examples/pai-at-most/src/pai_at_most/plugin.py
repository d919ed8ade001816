"""The hooks, and nothing else: what they decide is in ``_limits``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import attrs

from pai import (
    DefinitionError,
    DenyCall,
    Records,
    StepContext,
    StepPatch,
    ToolCallContext,
    hookimpl,
)
from pai_at_most._limits import is_spent, limit_faults, still_offered

Per = Literal["run", "thread"]


class AtMost:
    """
    Lets tools be called so many times, then hides them from the model.

    Args:
        calls: How often each tool may be called; one that is not named, as often as it likes.
        per: What is counted over: one run, or the whole conversation.

    Raises:
        DefinitionError: A limit is below 0.
    """

    name = "at-most"

    def __init__(self, calls: Mapping[str, int], per: Per = "run") -> None:
        if faults := limit_faults(calls):
            raise DefinitionError(faults, subject="at-most")
        self.calls = dict(calls)
        self.per = per

    @hookimpl
    async def prepare_model_step(
        self, step: StepContext[Any], state: dict[str, object], records: Records
    ) -> StepPatch | None:
        """Offer only what may still be called."""
        offered = [tool.name for tool in step.request.tools]
        left = still_offered(offered, self.calls, await self._made(state, records))
        return None if left is None else StepPatch(tools=left)

    @hookimpl
    async def before_tool_call(
        self, call: ToolCallContext[Any], state: dict[str, object], records: Records
    ) -> DenyCall | None:
        """Count the call, or refuse it: the model may have asked for several in one step."""
        if call.tool not in self.calls:
            return None
        made = await self._made(state, records)
        limit = self.calls[call.tool]
        if is_spent(call.tool, self.calls, made):
            call.run.emit(self.name, {"tool": call.tool, "limit": limit, "per": self.per})
            return DenyCall(f"{call.tool} may be called {limit} times in a {self.per}.")
        made[call.tool] = made.get(call.tool, 0) + 1
        if self.per == "thread":
            await records.put("made", made)
        return None

    async def _made(self, state: dict[str, object], records: Records) -> dict[str, int]:
        """The calls that were made, by tool: the same dict for the whole episode."""
        if "made" not in state:
            state["made"] = await records.get("made", {}) if self.per == "thread" else {}
        return cast("dict[str, int]", state["made"])


@attrs.frozen
class Options:
    """
    What a configuration may say.

    Args:
        calls: How often each tool may be called.
        per: ``"run"`` or ``"thread"``.
    """

    calls: dict[str, int] = attrs.field(factory=dict)
    per: Per = "run"


@hookimpl
def register_lifecycle(options: Options) -> AtMost | None:
    """Give the plugin that the options describe; without limits there is nothing to do."""
    return AtMost(options.calls, options.per) if options.calls else None
