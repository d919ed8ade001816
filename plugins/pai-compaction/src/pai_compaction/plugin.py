"""The hooks of the plugin, and what makes it: :func:`compaction`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import attrs

from pai import (
    ContextOverflow,
    StepContext,
    StepFinish,
    StepReset,
    StreamPart,
    hookimpl,
)
from pai_compaction._asking import Asker, CallModel, close
from pai_compaction._budget import Budget
from pai_compaction._checks import Faults, refuse
from pai_compaction._clear_tool_outputs import ClearToolOutputs, clear_tool_outputs
from pai_compaction._clearing import Clearing
from pai_compaction._compactor import Compactor, Setup
from pai_compaction._rows import Records
from pai_compaction._strategy import Strategy
from pai_compaction._summarise import summarise
from pai_compaction._tokenizer import Count, Tokenizer
from pai_compaction._window import window

__all__ = ("Compaction", "Options", "compaction", "register_lifecycle")


class Compaction:
    """The plugin; see :func:`compaction`."""

    # Where the installed plugin, "compaction", stands around an agent's own one, each has its rows.
    name = "pai_compaction"

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    @hookimpl
    async def wrap_model_call(
        self,
        step: StepContext[object],
        call_model: CallModel,
        state: dict[str, object],
        records: Records | None,
    ) -> AsyncIterator[StreamPart]:
        """
        Ask with a history that is short enough, and a second time where the model says it is not.

        Only what comes out of the model's stream is caught here, never what is thrown in where this
        one is read. What was shown of the first answer is void after a *StepReset* (R-37).
        """
        compactor = state.get("compactor")
        if not isinstance(compactor, Compactor):
            compactor = state["compactor"] = Compactor(self._setup, records)
        ask = Asker(call_model, step.request, step.run.id)
        request = await compactor.fit(step.request, step.run, ask)
        overflow: ContextOverflow | None = None
        shown = False
        while True:
            stream = call_model(request)
            try:
                while True:
                    try:
                        part = await anext(stream)
                    except StopAsyncIteration:
                        return
                    except ContextOverflow as error:
                        if overflow is not None:
                            raise
                        overflow = error
                        break
                    if type(part) is StepFinish:
                        await compactor.learn(request, part.usage)
                        part = _with_spent(part, ask)
                    else:
                        shown = type(part) is not StepReset
                    yield part
            finally:
                await close(stream)
            shorter = await compactor.harder(step.request, step.run, ask)
            if shorter is None:
                raise overflow
            request = shorter
            if shown:
                yield StepReset(overflow.code)
                shown = False


def _with_spent(finish: StepFinish, ask: Asker) -> StepFinish:
    """The run has used what its summaries used as well."""
    if ask.spent is None:
        return finish
    usage = ask.spent if finish.usage is None else ask.spent + finish.usage
    return attrs.evolve(finish, usage=usage)


@attrs.frozen
class Options:
    """
    The options of the installed plugin.

    Args:
        max_tokens: See :func:`compaction`.
        target: See :func:`compaction`.
        tokenizer: The name of an encoding.
        keep_outputs: At least so many of the last outputs of tools are never cleared.
        keep_turns: At least so many of the last turns are never summed up.
        summary: Whether a model is asked for summaries; otherwise the oldest turns are left out.
        summary_model: Who writes them, by name; ``None``: the model of the step.
    """

    max_tokens: int | None = None
    target: int | None = None
    tokenizer: str | None = None
    keep_outputs: int = 3
    keep_turns: int = 2
    summary: bool = True
    summary_model: str | None = None


def compaction(
    max_tokens: int | None = None,
    *,
    target: int | None = None,
    strategies: Sequence[Strategy] | None = None,
    tokenizer: str | Count | None = None,
) -> Compaction:
    """
    Keep the requests of an agent within its model's context.

    Args:
        max_tokens: Above so many tokens a request is compacted before it is sent. ``None``: only
            when the model says that it was too long.
        target: To so many a strategy compacts it, if it can; ``None``: half of *max_tokens*.
        strategies: What makes it shorter. The next one is asked if it is still too long. ``None``:
            ``clear_tool_outputs()``, ``summarise()``, ``window()``.
        tokenizer: What counts tokens: ``None`` for an estimate, ``"o200k_base"`` or
            ``"cl100k_base"`` for exact counts (with the extra *tokens*), or a function of a text.
            What the provider reports corrects each of them.

    Raises:
        DefinitionError: Options do not fit; all faults at once.
    """
    budget, faults = Budget.of(max_tokens, target)
    if strategies is None:
        strategies = (clear_tool_outputs(), summarise(), window())
    faults += _strategy_faults(strategies)
    faults.raise_for("compaction")
    clearings = [each.clearing for each in strategies if isinstance(each, ClearToolOutputs)]
    clearing = clearings[0] if clearings else Clearing()
    return Compaction(Setup(budget, tuple(strategies), Tokenizer(tokenizer), clearing))


def _strategy_faults(strategies: object) -> Faults:
    if isinstance(strategies, str) or not isinstance(strategies, Sequence) or not strategies:
        return refuse("strategies", "expected some, in a sequence")
    faults = Faults()
    for index, each in enumerate(strategies):
        if not callable(getattr(each, "apply", None)) or not isinstance(
            getattr(each, "name", None), str
        ):
            faults += refuse(
                f"strategies[{index}]", "is no strategy: it needs name and apply(work)"
            )
    if len({each.clearing for each in strategies if isinstance(each, ClearToolOutputs)}) > 1:
        faults += refuse(
            "strategies", "several clear_tool_outputs() must agree on exclude= and placeholder="
        )
    return faults


@hookimpl
def register_lifecycle(options: Options | None) -> Compaction:
    """Give the plugin with the options of this installation."""
    chosen = Options() if options is None else options
    summing = [summarise(chosen.keep_turns, model=chosen.summary_model)] if chosen.summary else []
    return compaction(
        chosen.max_tokens,
        target=chosen.target,
        strategies=[clear_tool_outputs(chosen.keep_outputs), *summing, window()],
        tokenizer=chosen.tokenizer,
    )
