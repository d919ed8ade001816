"""Short texts that are made beside a run: titles of threads and labels of reasoning (A-TITLE, A-REASON)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import attrs

from pai.definition._behavior import AgentBehaviorInput
from pai.definition._checks import arity_faults
from pai.definition._instructions import InstructionsValue, instruction_faults
from pai.definition._selection import ModelSelection, model_faults
from pai.definition._signal import Signal
from pai.definition._thread_ref import ThreadRef
from pai.errors import Fault
from pai.ports import ModelDriver

if TYPE_CHECKING:
    from pai.protocol import Message

__all__ = (
    "ReasoningSummaryConfig",
    "ReasoningSummaryGeneratorInput",
    "ThreadTitleConfig",
    "ThreadTitleGeneratorInput",
    "TitleRefresh",
    "summary_config",
    "title_config",
)

ContextT = TypeVar("ContextT")

BareModel = (
    str
    | ModelDriver
    | Callable[[AgentBehaviorInput[Any]], "str | ModelDriver | Awaitable[str | ModelDriver]"]
)
"""A model without settings, or a function that chooses one (A-MODEL-7)."""


@attrs.frozen(eq=False)
class ThreadTitleGeneratorInput(Generic[ContextT]):
    """
    What a title is made from.

    Args:
        runtime_context: As in the run.
        thread: The thread, with the title it has.
        run_id: The run that has completed.
        thread_id: The thread's id.
        operation: ``send``, ``trigger``, ``regenerate`` or ``resume``.
        started_at: When the run began.
        messages: The thread's messages up to the run's last, oldest first: canonical text.
        signal: Set when the work is to stop.
    """

    runtime_context: ContextT
    thread: ThreadRef
    run_id: str
    thread_id: str
    operation: str
    started_at: datetime
    messages: tuple[Message, ...]
    signal: Signal


@attrs.frozen(eq=False)
class ReasoningSummaryGeneratorInput(Generic[ContextT]):
    """
    What a label is made from (A-REASON-2).

    Args:
        runtime_context: As in the run.
        thread: The thread.
        run_id: The run.
        thread_id: The thread's id.
        message_id: The message of the part.
        reasoning_ordinal: The part's place among the reasoning parts of this message, from 0.
        operation: ``send``, ``trigger``, ``regenerate`` or ``resume``.
        started_at: When the run began.
        reasoning: The complete text of the part: canonical text.
        signal: Set when the work is to stop.
    """

    runtime_context: ContextT
    thread: ThreadRef
    run_id: str
    thread_id: str
    message_id: str
    reasoning_ordinal: int
    operation: str
    started_at: datetime
    reasoning: str
    signal: Signal


@attrs.frozen
class TitleRefresh:
    """
    When a generated title is made again; all that is given must be met (A-TITLE-4).

    Args:
        after_messages: So many new messages since.
        after_runs: So many runs since.
        min_age: So many seconds since.
    """

    after_messages: int | None = None
    after_runs: int | None = None
    min_age: float | None = None


Text = str | None


@attrs.frozen(eq=False)
class ThreadTitleConfig:
    """
    How threads get titles, after runs that completed (A-TITLE-1).

    Args:
        generate: ``"once"``, or ``"refresh"`` over time.
        refresh: When; ``None``: after each run.
        overwrite: Which titles may be replaced: none (``"empty"``), those that were
            ``"generated"``, or ``"always"`` any, also one that a person gave. Default: ``"empty"``
            for once, ``"generated"`` for refresh.
        model: The model; default: the one that the run selected, without its settings (A-MODEL-7).
        instructions: For the model, or a function of :class:`ThreadTitleGeneratorInput`.
        generator: Makes the title in place of a model; ``None`` leaves the title as it is.
    """

    generate: Literal["once", "refresh"] = "once"
    refresh: TitleRefresh | None = None
    overwrite: Literal["empty", "generated", "always"] | None = None
    model: BareModel | None = None
    instructions: (
        InstructionsValue
        | Callable[
            [ThreadTitleGeneratorInput[Any]], InstructionsValue | Awaitable[InstructionsValue]
        ]
        | None
    ) = None
    generator: Callable[[ThreadTitleGeneratorInput[Any]], Text | Awaitable[Text]] | None = None

    @property
    def replaces(self) -> tuple[str, ...]:
        """The sources whose titles may be replaced; ``""`` stands for no title (A-TITLE-3)."""
        overwrite = self.overwrite or ("generated" if self.generate == "refresh" else "empty")
        return {
            "empty": ("",),
            "generated": ("", "generated"),
            "always": ("", "generated", "manual"),
        }[overwrite]


@attrs.frozen(eq=False)
class ReasoningSummaryConfig:
    """
    How parts of reasoning get labels, as soon as each closes (A-REASON-1).

    Args:
        model: The model; default: the one that the run selected, without its settings (A-MODEL-7).
        instructions: For the model, or a function of :class:`ReasoningSummaryGeneratorInput`.
        generator: Makes the label in place of a model; ``None`` gives none.
    """

    model: BareModel | None = None
    instructions: (
        InstructionsValue
        | Callable[
            [ReasoningSummaryGeneratorInput[Any]],
            InstructionsValue | Awaitable[InstructionsValue],
        ]
        | None
    ) = None
    generator: Callable[[ReasoningSummaryGeneratorInput[Any]], Text | Awaitable[Text]] | None = None


def title_config(given: object, at: str, faults: list[Fault]) -> ThreadTitleConfig | None:
    """What ``thread_titles`` says; ``None``: no titles."""
    if given is None or given is False:
        return None
    if given is True:
        return ThreadTitleConfig()
    if not isinstance(given, ThreadTitleConfig):
        faults.append(Fault(at, f"expected a bool or ThreadTitleConfig, got {_kind(given)}"))
        return None
    if given.generate not in ("once", "refresh"):
        faults.append(Fault(f"{at}.generate", "expected 'once' or 'refresh'"))
    if given.overwrite not in (None, "empty", "generated", "always"):
        faults.append(Fault(f"{at}.overwrite", "expected 'empty', 'generated' or 'always'"))
    faults += _refresh_faults(given, f"{at}.refresh")
    faults += _common_faults(given, at)
    return given


def _refresh_faults(config: ThreadTitleConfig, at: str) -> list[Fault]:
    refresh: Any = config.refresh
    if refresh is None:
        return []
    if not isinstance(refresh, TitleRefresh):
        return [Fault(at, f"expected TitleRefresh, got {_kind(refresh)}")]
    faults = []
    if config.generate == "once":
        faults.append(Fault(at, "does nothing where a title is made once: set generate='refresh'"))
    for name in ("after_messages", "after_runs"):
        value = getattr(refresh, name)
        if value is not None and (type(value) is not int or value < 1):
            faults.append(Fault(f"{at}.{name}", "expected a whole number of at least 1"))
    age = refresh.min_age
    if age is not None and (type(age) not in (int, float) or not age >= 0):
        faults.append(Fault(f"{at}.min_age", "expected seconds, at least 0"))
    return faults


def summary_config(given: object, at: str, faults: list[Fault]) -> ReasoningSummaryConfig | None:
    """What ``reasoning_summary`` says; ``None``: no labels."""
    if given is None or given is False:
        return None
    if given is True:
        return ReasoningSummaryConfig()
    if not isinstance(given, ReasoningSummaryConfig):
        faults.append(Fault(at, f"expected a bool or ReasoningSummaryConfig, got {_kind(given)}"))
        return None
    faults += _common_faults(given, at)
    return given


def _common_faults(config: ThreadTitleConfig | ReasoningSummaryConfig, at: str) -> list[Fault]:
    faults = []
    model: object = config.model
    if isinstance(model, ModelSelection):
        faults.append(
            Fault(f"{at}.model", "expected a bare model: no settings go to it (A-MODEL-7)")
        )
    elif model is not None:
        faults += model_faults(model, f"{at}.model")
    if config.instructions is not None:
        faults += instruction_faults(config.instructions, f"{at}.instructions")
    return faults + arity_faults(config.generator, f"{at}.generator")


def _kind(given: object) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
