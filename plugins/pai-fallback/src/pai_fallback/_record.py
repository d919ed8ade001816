"""Telling what happened: an event, metadata of the run, a log line, the span that is open."""

from __future__ import annotations

import logging
import sys

import attrs

from pai import InvalidInput, MetadataPatch, RunContext
from pai.schema import JsonValue
from pai_fallback._switch import Switch

__all__ = ("EVENT", "Record", "tell")

log = logging.getLogger("pai.fallback")

EVENT = "fallback"
"""The name of the plugin event."""


@attrs.frozen
class Record:
    """
    A key of the run's metadata that lists its switches.

    Args:
        bag: ``private`` or ``public``.
        key: The key.
    """

    bag: str
    key: str

    @classmethod
    def parse(cls, text: str) -> Record | None:
        """``"public.key"`` or ``"private.key"``; a bare key is private."""
        bag, dot, key = text.partition(".")
        if not dot:
            bag, key = "private", text
        return cls(bag, key) if bag in {"private", "public"} and key else None

    async def write(self, run: RunContext[object], switch: Switch) -> None:
        """
        Add a switch to the list.

        What cannot be written is logged: an answer is never lost for its record.
        """
        bag = run.metadata.public if self.bag == "public" else run.metadata.private
        if self.key not in bag:
            log.warning(
                "agent %s declares no %s in its %s run metadata: the switch is not recorded",
                run.agent.name, self.key, self.bag,
            )  # fmt: skip
            return
        before = bag[self.key]
        value = [*(before if isinstance(before, list) else ()), switch.as_json()]
        try:
            await run.update_metadata(run=MetadataPatch(**{self.bag: {self.key: value}}))
        except InvalidInput as error:
            log.warning("the switch is not recorded: %s", error)


async def tell(run: RunContext[object], switch: Switch, record: Record | None) -> None:
    """Tell of a switch, wherever it is to be told."""
    values = switch.as_json()
    log.info(
        "run %s step %d: %s failed with %s, next is %s",
        run.id, switch.step, switch.source, switch.code, switch.target,
    )  # fmt: skip
    run.emit(EVENT, values)
    _mark_span(values)
    if record is not None:
        await record.write(run, switch)


def _mark_span(values: dict[str, JsonValue]) -> None:
    """Put an event on the span that is open, where the process traces."""
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return
    span = trace.get_current_span()
    if span.is_recording():
        span.add_event(
            "pai.fallback",
            {f"pai.fallback.{key}": value for key, value in values.items() if value is not None},
        )
