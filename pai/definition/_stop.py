"""When the loop stops, though the model would go on: strategies, and what they are shown (O-2)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast, get_args

import attrs

from pai.definition._behavior import AgentBehaviorInput
from pai.definition._checks import arity_faults
from pai.errors import DefinitionError, Fault
from pai.protocol import FinishReason, Message, Usage
from pai.schema import JsonObject, JsonValue

__all__ = (
    "AllOf",
    "AnyOf",
    "Budget",
    "FinishReasons",
    "LoopState",
    "Price",
    "StepLimit",
    "StopFunction",
    "StopStrategy",
    "StopWhen",
    "budget",
    "step_limit",
    "stop_faults",
    "stop_from_json",
    "until_finish_reason",
)

ContextT = TypeVar("ContextT")


@attrs.frozen(eq=False)
class LoopState(AgentBehaviorInput[ContextT], Generic[ContextT]):
    """
    Where a run stands when it could go on: what a ``stop_when`` function is handed.

    Args:
        steps: Model steps of this episode so far; 0 behind a step that an answer has finished.
        finish_reason: How the last step finished.
        usage: What the run has used so far.
        tool_calls: Calls the run has made so far.
        last_tool_calls: Those of the last step.
        messages: The thread's messages, oldest first; the last one is the step's.
    """

    steps: int
    finish_reason: FinishReason
    usage: Usage
    tool_calls: int
    last_tool_calls: int
    messages: Sequence[Message]


class StopStrategy:
    """
    A strategy of ours: it is JSON, so it can be given with a call.

    ``a | b`` stops as soon as one of both would, ``a & b`` when both would. Either may be a function
    as well; then it is for agents and hooks only.
    """

    __slots__ = ()

    def __or__(self, other: StopWhen[Any]) -> AnyOf:
        return AnyOf((self, other))

    def __ror__(self, other: StopWhen[Any]) -> AnyOf:
        return AnyOf((other, self))

    def __and__(self, other: StopWhen[Any]) -> AllOf:
        return AllOf((self, other))

    def __rand__(self, other: StopWhen[Any]) -> AllOf:
        return AllOf((other, self))

    def reason(self, state: LoopState[Any]) -> str | None:
        """Why to stop now; ``None``: go on."""
        raise NotImplementedError

    def to_json(self) -> JsonObject:
        """The strategy as it is stored."""
        raise NotImplementedError


StopFunction = Callable[[LoopState[ContextT]], "bool | str | Awaitable[bool | str]"]
"""Tells whether to stop; a text is the ``stop_reason``."""

StopWhen = StopStrategy | StopFunction[ContextT]


@attrs.frozen
class StepLimit(StopStrategy):
    """Stop after so many steps of an episode."""

    steps: int

    def reason(self, state: LoopState[Any]) -> str | None:
        return "step_limit" if state.steps >= self.steps else None

    def to_json(self) -> JsonObject:
        return {"step_limit": self.steps}


@attrs.frozen
class FinishReasons(StopStrategy):
    """Stop after a step that finished for one of these reasons."""

    reasons: tuple[FinishReason, ...]

    def reason(self, state: LoopState[Any]) -> str | None:
        return "finish_reason" if state.finish_reason in self.reasons else None

    def to_json(self) -> JsonObject:
        return {"until_finish_reason": list(self.reasons)}


@attrs.frozen
class Price:
    """
    What a million tokens cost, in any currency.

    Args:
        input: Of what the model reads.
        output: Of what it writes.
        cached_input: Of what it reads from a cache; ``None``: the same as other input.
    """

    input: float
    output: float
    cached_input: float | None = None

    def of(self, usage: Usage) -> float:
        """What *usage* costs."""
        cached = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input_tokens - usage.cached_input_tokens
        whole = (
            fresh * self.input
            + usage.cached_input_tokens * cached
            + usage.output_tokens * self.output
        )
        return whole / 1_000_000


@attrs.frozen
class Budget(StopStrategy):
    """Stop when a run has used up one of these."""

    tokens: int | None = None
    tool_calls: int | None = None
    cost: float | None = None
    price: Price | None = None

    def reason(self, state: LoopState[Any]) -> str | None:
        usage = state.usage
        if self.tokens is not None:
            used = usage.total_tokens or usage.input_tokens + usage.output_tokens
            if used >= self.tokens:
                return "token_budget"
        if self.tool_calls is not None and state.tool_calls >= self.tool_calls:
            return "tool_call_budget"
        if self.cost is not None and self.price is not None and self.price.of(usage) >= self.cost:
            return "cost_budget"
        return None

    def to_json(self) -> JsonObject:
        fields = attrs.asdict(self, filter=lambda _, value: value is not None)
        return {"budget": fields}


@attrs.frozen
class AnyOf(StopStrategy):
    """Stop as soon as one of these would."""

    of: tuple[StopWhen[Any], ...]

    def to_json(self) -> JsonObject:
        return {"any": _items_to_json(self.of)}


@attrs.frozen
class AllOf(StopStrategy):
    """Stop when all of these would."""

    of: tuple[StopWhen[Any], ...]

    def to_json(self) -> JsonObject:
        return {"all": _items_to_json(self.of)}


def _items_to_json(items: Sequence[StopWhen[Any]]) -> list[JsonValue]:
    # stop_faults() has refused functions where JSON is wanted.
    return [cast("StopStrategy", item).to_json() for item in items]


def step_limit(steps: int) -> StepLimit:
    """
    Stop after so many model steps of an episode, as ``max_steps`` does.

    Args:
        steps: At least 1; the first step of a run is always made.

    Raises:
        DefinitionError: It is no such number.
    """
    _check(_count_faults(steps, "steps"), "step_limit")
    return StepLimit(steps)


def until_finish_reason(*reasons: FinishReason) -> FinishReasons:
    """
    Stop after a step that finished for one of these reasons, though it called tools.

    Args:
        reasons: ``"tool-calls"``, ``"length"``, ``"content-filter"``, ...

    Raises:
        DefinitionError: There is none, or one nobody knows.
    """
    _check(_reason_faults(reasons), "until_finish_reason")
    return FinishReasons(reasons)


def budget(
    *,
    tokens: int | None = None,
    tool_calls: int | None = None,
    cost: float | None = None,
    price: Price | None = None,
) -> Budget:
    """
    Stop when the run has used up one of these; the step that does so is whole.

    Args:
        tokens: Tokens read and written.
        tool_calls: Calls of tools.
        cost: What the tokens may cost, at *price*; pai knows no prices.
        price: What a million tokens cost.

    Raises:
        DefinitionError: Nothing is limited, or a limit is no number above 0.
    """
    given = Budget(tokens, tool_calls, cost, price)
    _check(_budget_faults(given), "budget")
    return given


def _check(faults: list[Fault], subject: str) -> None:
    if faults:
        raise DefinitionError(faults, subject=subject)


def _count_faults(value: object, at: str) -> list[Fault]:
    if type(value) is int and value >= 1:
        return []
    return [Fault(at, "expected a whole number of at least 1")]


def _reason_faults(reasons: Sequence[object]) -> list[Fault]:
    known = get_args(FinishReason)
    if not reasons:
        return [Fault("reasons", f"expected at least one of {', '.join(known)}")]
    return [
        Fault(f"reasons[{index}]", f"{reason!r} is none of {', '.join(known)}")
        for index, reason in enumerate(reasons)
        if reason not in known
    ]


def _budget_faults(given: Budget) -> list[Fault]:
    faults: list[Fault] = []
    for name in ("tokens", "tool_calls"):
        if getattr(given, name) is not None:
            faults += _count_faults(getattr(given, name), name)
    if given.cost is not None:
        if not _is_amount(given.cost) or given.cost <= 0:
            faults.append(Fault("cost", "expected a number above 0"))
        if given.price is None:
            faults.append(Fault("price", "is needed with cost: Price(input=..., output=...)"))
    price: object = given.price
    if price is not None:
        if not isinstance(price, Price):
            return [*faults, Fault("price", "expected Price(input=..., output=...)")]
        faults += [
            Fault(f"price.{name}", "expected a number of at least 0")
            for name, value in attrs.asdict(price).items()
            if not (_is_amount(value) or (name == "cached_input" and value is None))
        ]
    if not faults and given.tokens is given.tool_calls is given.cost is None:
        faults.append(Fault("", "limits nothing: give tokens, tool_calls or cost"))
    return faults


def _is_amount(value: object) -> bool:
    return type(value) in (int, float) and 0 <= cast("float", value) < float("inf")


def stop_faults(given: object, at: str, *, json: bool = False) -> list[Fault]:
    """
    What is wrong with a ``stop_when``.

    Args:
        given: What was given.
        at: Where.
        json: Functions are refused: it is to be stored.
    """
    if isinstance(given, (AnyOf, AllOf)):
        return [fault for item in given.of for fault in stop_faults(item, at, json=json)]
    if isinstance(given, StopStrategy):
        return []
    if json and callable(given):
        return [Fault(at, "a function belongs into define_agent(): options of a call are stored")]
    if not callable(given) or isinstance(given, type):
        return [Fault(at, "expected step_limit(), until_finish_reason(), budget() or a function")]
    return arity_faults(given, at)


def stop_from_json(value: object, at: str, faults: list[Fault]) -> StopStrategy | None:
    """The strategy that :meth:`StopStrategy.to_json` wrote; what is wrong is added to *faults*."""
    kind, rest = _single(value)
    try:
        if kind == "step_limit":
            return step_limit(rest)
        if kind == "until_finish_reason" and isinstance(rest, list):
            return until_finish_reason(*rest)
        if kind == "budget" and isinstance(rest, Mapping):
            fields: dict[str, Any] = dict(rest)
            if isinstance(fields.get("price"), Mapping):
                fields["price"] = Price(**fields["price"])
            return budget(**fields)
    except DefinitionError as error:
        faults += [fault.under(f"{at}.{kind}") for fault in error.faults]
        return None
    except TypeError:
        faults.append(Fault(f"{at}.{kind}", "has a key that nobody knows"))
        return None
    if kind in ("any", "all") and isinstance(rest, list) and rest:
        items = [
            stop_from_json(item, f"{at}.{kind}[{index}]", faults) for index, item in enumerate(rest)
        ]
        whole = tuple([item for item in items if item is not None])
        return AnyOf(whole) if kind == "any" else AllOf(whole)
    faults.append(
        Fault(at, "expected one of step_limit, until_finish_reason, budget, any, all, as a key")
    )
    return None


def _single(value: object) -> tuple[str, Any]:
    """The one key and its value; no key where it is no object of that form."""
    if isinstance(value, Mapping) and len(value) == 1:
        return next(iter(value.items()))
    return "", None
