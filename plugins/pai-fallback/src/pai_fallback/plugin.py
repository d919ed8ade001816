"""The plugin: its hook, its options, and :func:`fallback`, which makes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import attrs

from pai import (
    DefinitionError,
    Fault,
    ModelDriver,
    StepContext,
    StreamPart,
    hookimpl,
)
from pai_fallback._chain import CallModel, Chain
from pai_fallback._given_up import Place
from pai_fallback._record import Record
from pai_fallback._switches import DEFAULT_ON, On, Switches
from pai_fallback._target import Instructions, Link, Target

__all__ = ("Fallback", "Options", "fallback", "register_lifecycle")


class Fallback:
    """
    A chain of models around the call; made by :func:`fallback`.

    Attributes:
        chain: What follows the step's own model.
        sticky: Whether later steps begin where the last one was answered.
    """

    name = "fallback"

    def __init__(self, chain: Chain, *, sticky: bool) -> None:
        self.chain = chain
        self.sticky = sticky

    @hookimpl
    def wrap_model_call(
        self, step: StepContext[Any], call_model: CallModel, state: dict[str, object]
    ) -> AsyncIterator[StreamPart]:
        """Ask one model after the other, until one answers."""
        return self.chain.stream(step, call_model, Place.of(state) if self.sticky else None)


def fallback(
    *models: ModelDriver | str | Target,
    on: Iterable[On] | On = DEFAULT_ON,
    first: float | None = None,
    between: float | None = None,
    total: float | None = None,
    instructions: Mapping[str, Instructions] | None = None,
    record: str | None = None,
    sticky: bool = True,
) -> Fallback:
    """
    Make a plugin that asks other models when the step's own fails.

    Each model is asked at most once a step, in order; nothing is tried again.

    Args:
        models: What follows the step's own model: names, drivers, or :class:`Target` objects, which
            say what is different for one of them.
        on: What switches: a ``ModelError`` class or its code (``"rate_limited"``,
            ``"context_overflow"``, ``"model_timeout"``, ``"incomplete_stream"``, ...; the default
            ``"model_error"`` is all of them), a provider's own code, an HTTP status, a function of
            the error, ``"unavailable"`` (no connection, or a status from 500 on), and
            ``"refusal"``: the model stopped for its content filter.
        first: Seconds until a model's first part.
        between: Seconds from one part to the next.
        total: Seconds for a model's whole answer.
        instructions: Instructions for targets, by name (``"openai:gpt-5.2"``) or provider; a
            target's own win. They replace the step's whole (A-INSTR-3).
        record: The key of the run's metadata that lists what happened: ``"private.key"``,
            ``"public.key"``, or a bare key, which is private. Agents that do not declare it are
            served alike.
        sticky: Later steps of the episode begin with the model that answered last.

    Raises:
        DefinitionError: All mistakes at once.
    """
    faults: list[Fault] = []
    by_key = dict(instructions or {})
    used: set[str] = set()
    links = [
        link
        for index, model in enumerate(models)
        if (link := _link(model, by_key, used, f"models[{index}]", faults)) is not None
    ]
    if not models:
        faults.append(Fault("models", "give at least one model to fall back to"))
    if len(links) == len(models):
        faults += [
            Fault(f"instructions.{key}", "no target has this name or provider")
            for key in by_key
            if key not in used
        ]
    switches = Switches(on)
    faults += switches.faults
    for at, seconds in (("first", first), ("between", between), ("total", total)):
        if seconds is not None and not seconds > 0:
            faults.append(Fault(at, "expected seconds above 0, or None"))
    where = None
    if record is not None:
        where = Record.parse(record)
        if where is None:
            faults.append(Fault("record", 'expected "private.key", "public.key", or a key'))
    if faults:
        raise DefinitionError(faults, subject="fallback")
    return Fallback(Chain(tuple(links), switches, first, between, total, where), sticky=sticky)


def _link(
    model: ModelDriver | str | Target,
    instructions: Mapping[str, Instructions],
    used: set[str],
    at: str,
    faults: list[Fault],
) -> Link | None:
    """The link of a model, with the instructions meant for it; faults are added to *faults*."""
    target = model if isinstance(model, Target) else Target(model)
    try:
        link = Link.of(target)
        keys = [key for key in link.keys if key in instructions]
        used.update(keys)
        if keys and target.instructions is None:
            link = Link.of(attrs.evolve(target, instructions=instructions[keys[0]]))
    except DefinitionError as error:
        faults += [Fault(at, fault.message) for fault in error.faults]
    except TypeError as error:
        faults.append(Fault(f"{at}.instructions", str(error)))
    else:
        return link
    return None


@attrs.frozen
class Options:
    """
    What a configuration file may say; see :func:`fallback`.

    Args:
        models: Names; without any the plugin stands aside.
        on: Codes, statuses and words.
        first: Seconds until a model's first part.
        between: Seconds from one part to the next.
        total: Seconds for a model's whole answer.
        instructions: Text, by a target's name or provider.
        record: The key of the run's metadata that lists what happened.
        sticky: Later steps begin with the model that answered last.
    """

    models: list[str] = attrs.field(factory=list)
    on: list[str | int] = attrs.field(factory=lambda: list(DEFAULT_ON))
    first: float | None = None
    between: float | None = None
    total: float | None = None
    instructions: dict[str, str] = attrs.field(factory=dict)
    record: str | None = None
    sticky: bool = True


@hookimpl
def register_lifecycle(options: object) -> Fallback | None:
    """Give the plugin that the options describe; without models there is nothing to do."""
    chosen = options if isinstance(options, Options) else Options()
    if not chosen.models:
        return None
    return fallback(
        *chosen.models,
        on=chosen.on,
        first=chosen.first,
        between=chosen.between,
        total=chosen.total,
        instructions=chosen.instructions,
        record=chosen.record,
        sticky=chosen.sticky,
    )
