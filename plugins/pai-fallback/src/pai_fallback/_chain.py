"""The chain at work: one model after the other, until one answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import attrs

from pai import (
    ModelDriver,
    ModelError,
    ModelRequest,
    StepContext,
    StepFinish,
    StepReset,
    StreamPart,
    Usage,
    limits,
)
from pai.models import resolve_model
from pai_fallback._given_up import GivenUp, Place
from pai_fallback._record import Record, tell
from pai_fallback._switch import Switch
from pai_fallback._switches import Switches
from pai_fallback._target import Link, driver_name

__all__ = ("CallModel", "Chain")

CallModel = Callable[[ModelRequest], AsyncIterator[StreamPart]]


@attrs.frozen(eq=False)
class Chain:
    """
    What follows a step's own model.

    Args:
        links: The targets, in order.
        switches: What makes it go on.
        first: Seconds until a model's first part.
        between: Seconds from one part to the next.
        total: Seconds for a model's whole answer.
        record: Where in the run's metadata switches are listed.
    """

    links: tuple[Link, ...]
    switches: Switches
    first: float | None = None
    between: float | None = None
    total: float | None = None
    record: Record | None = None

    async def stream(
        self, step: StepContext[object], call_model: CallModel, place: Place | None
    ) -> AsyncIterator[StreamPart]:
        """
        Ask the step's own model, and on failure the targets after it, each at most once.

        What was shown of an answer that is given up is void after a *StepReset* (R-37). Each stream
        is closed before the next one is opened. Only what comes out of a stream is caught here,
        never what is thrown in where this one is read.

        Args:
            step: The step.
            call_model: Asks a model.
            place: Where to begin, and to note where the next step should; ``None``: always with the
                step's own model.

        Raises:
            ModelError: The last model's; its notes name those before.
        """
        given_up, request = GivenUp.shared(step.request)
        own = resolve_model(request.model)
        at = 0 if place is None else place.get(own)
        if at and self.links[at - 1].driver in given_up:
            at = 0
        shown = False
        spent: Usage | None = None
        notes: list[str] = []
        while True:
            driver, name = self._at(at, own)
            error: ModelError | None = None
            next_: int | None = None
            stream = limits(
                call_model(self.links[at - 1].request(request) if at else request),
                first=self.first,
                between=self.between,
                total=self.total,
            )
            try:
                while True:
                    try:
                        part = await anext(stream)
                    except StopAsyncIteration:
                        return
                    except ModelError as failure:
                        error = failure
                        break
                    if type(part) is StepFinish:
                        if part.reason == "content-filter" and self.switches.refusals:
                            given_up.add(driver)
                            next_ = self._next(at, given_up)
                        spent = _sum(spent, part.usage)
                        if next_ is not None:
                            break
                        if place is not None:
                            place.put(own, at)
                        if spent is not part.usage:
                            part = attrs.evolve(part, usage=spent)
                    else:
                        shown = type(part) is not StepReset
                    yield part
            finally:
                await _close(stream)

            if error is not None:
                if not self.switches.takes(error):
                    raise _with_notes(error, notes)
                given_up.add(driver)
                # Asked now: a fallback further inside may have given models up meanwhile.
                next_ = self._next(at, given_up)
            target = None if next_ is None else self._at(next_, own)[1]
            switch = Switch.after(error, step=step.index, source=name, target=target, reset=shown)
            await tell(step.run, switch, self.record)
            if next_ is None:
                assert error is not None
                raise _with_notes(error, notes)
            notes.append(f"{name} was asked before and given up: {switch.code}")
            if shown:
                yield StepReset(switch.code)
                shown = False
            at = next_

    def _at(self, at: int, own: ModelDriver) -> tuple[ModelDriver, str]:
        if at == 0:
            return own, driver_name(own)
        link = self.links[at - 1]
        return link.driver, link.name

    def _next(self, at: int, given_up: GivenUp) -> int | None:
        for number, link in enumerate(self.links[at:], at + 1):
            if link.driver not in given_up:
                return number
        return None


def _sum(spent: Usage | None, usage: Usage | None) -> Usage | None:
    """What all answers used: one that was refused is paid for as well."""
    if spent is None or usage is None:
        return usage if spent is None else spent
    return spent + usage


def _with_notes(error: ModelError, notes: list[str]) -> ModelError:
    for note in notes:
        error.add_note(note)
    return error


async def _close(stream: object) -> None:
    close = getattr(stream, "aclose", None)
    if close is not None:
        await close()
