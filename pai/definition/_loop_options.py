"""What steers the loop of a run: an agent's fields, and what a call or a hook makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, Generic, Literal, TypeVar, cast

import attrs

from pai.definition._checks import arity_faults
from pai.definition._repair import RepairToolInput
from pai.definition._stop import StopWhen, stop_faults
from pai.errors import Fault
from pai.protocol import FirstStep, PromptCache, Retry, ToolChoice, ToolName

__all__ = (
    "DEFAULT_RETRY",
    "DISCOVERY_TOOL",
    "LazyTools",
    "LoopOptions",
    "as_prompt_cache",
    "choice_names",
    "option_faults",
)

ContextT = TypeVar("ContextT")

DEFAULT_RETRY: Final = Retry()
DISCOVERY_TOOL: Final = "__lazy__tool__discovery__"
"""The tool by which a model finds the lazy ones (O-6)."""

_CHOICES: Final = ("auto", "none", "required")
_RETENTIONS: Final = ("none", "short", "long")
_DESCRIBE: Final = ("none", "first-sentence", "full")


@attrs.frozen
class LazyTools:
    """
    How lazy tools are told of before they are discovered.

    Args:
        describe: What stands beside their names: nothing, the first sentence, or all.
    """

    describe: Literal["none", "first-sentence", "full"] = "none"


@attrs.frozen(eq=False, kw_only=True)
class LoopOptions(Generic[ContextT]):
    """What steers the loop; see :func:`pai.define_agent`."""

    max_steps: int = 10
    stop_when: StopWhen[ContextT] | None = None
    tool_choice: ToolChoice | FirstStep | None = None
    tool_execution: Literal["parallel", "sequential"] = "parallel"
    max_parallel_tools: int | None = None
    retry: Retry | None = DEFAULT_RETRY
    prompt_cache: PromptCache | None = None
    repair_tool_input: bool | RepairToolInput[ContextT] = True
    lazy_tools: LazyTools = LazyTools()


def as_prompt_cache(value: object) -> Any:
    """A retention alone as a wish; everything else as it is."""
    return PromptCache(cast("Any", value)) if value in _RETENTIONS else value


def choice_names(choice: object) -> list[str]:
    """The tools that a choice names."""
    if isinstance(choice, FirstStep):
        return [*choice_names(choice.choice), *choice_names(choice.then)]
    return [choice.name] if isinstance(choice, ToolName) else []


def _count(value: object, at: str) -> list[Fault]:
    if type(value) is int and value >= 1:
        return []
    return [Fault(at, "expected a whole number of at least 1")]


def _choice(value: object, at: str) -> list[Fault]:
    if isinstance(value, FirstStep):
        then = [] if value.then is None else _plain_choice(value.then, f"{at}.then")
        return _plain_choice(value.choice, f"{at}.choice") + then
    return _plain_choice(value, at)


def _plain_choice(value: object, at: str) -> list[Fault]:
    if isinstance(value, ToolName):
        name: object = value.name
        return [] if isinstance(name, str) and name else [Fault(at, "expected the name of a tool")]
    if isinstance(value, str) and value in _CHOICES:
        return []
    return [Fault(at, "expected 'auto', 'none', 'required', ToolName(name) or FirstStep(choice)")]


def _execution(value: object, at: str) -> list[Fault]:
    if value in ("parallel", "sequential"):
        return []
    return [Fault(at, "expected 'parallel' or 'sequential'")]


def _retry(value: object, at: str) -> list[Fault]:
    if not isinstance(value, Retry):
        return [Fault(at, "expected Retry(max_retries=..., max_wait=...)")]
    faults = []
    retries: object = value.max_retries
    if type(retries) is not int or retries < 0:
        faults.append(Fault(f"{at}.max_retries", "expected a whole number of at least 0"))
    wait: object = value.max_wait
    if type(wait) not in (int, float) or not 0 <= cast("float", wait) < math.inf:
        faults.append(Fault(f"{at}.max_wait", "expected seconds, at least 0"))
    return faults


def _prompt_cache(value: object, at: str) -> list[Fault]:
    if not isinstance(value, PromptCache) or value.retention not in _RETENTIONS:
        return [Fault(at, "expected 'none', 'short', 'long' or PromptCache(retention, key)")]
    key: object = value.key
    if key is not None and not (isinstance(key, str) and key):
        return [Fault(f"{at}.key", "expected a text, or None")]
    return []


def _lazy(value: object, at: str) -> list[Fault]:
    if not isinstance(value, LazyTools):
        return [Fault(at, "expected LazyTools(describe=...)")]
    if value.describe not in _DESCRIBE:
        return [Fault(f"{at}.describe", f"expected one of {', '.join(map(repr, _DESCRIBE))}")]
    return []


def _repair(value: object, at: str) -> list[Fault]:
    if isinstance(value, bool):
        return []
    if not callable(value) or isinstance(value, type):
        return [Fault(at, "expected True, False or a function")]
    return arity_faults(value, at)


_FAULTS: Final[dict[str, Callable[[object, str], list[Fault]]]] = {
    "max_steps": _count,
    "stop_when": stop_faults,
    "tool_choice": _choice,
    "tool_execution": _execution,
    "max_parallel_tools": _count,
    "retry": _retry,
    "prompt_cache": _prompt_cache,
    "repair_tool_input": _repair,
    "lazy_tools": _lazy,
}


def option_faults(name: str, value: object, at: str | None = None) -> list[Fault]:
    """
    What is wrong with the value of a field of :class:`LoopOptions`, known by itself.

    Args:
        name: The field.
        value: Its value; ``None`` is for who takes it as nothing.
        at: Where; the name if none is given.
    """
    return _FAULTS[name](value, name if at is None else at)
