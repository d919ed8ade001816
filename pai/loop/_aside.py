"""What code writes beside the step's stream: data, progress, events (A-UI-2)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal

from pai.contexts import AsideItem, ReplaceValue
from pai.definition import ToolDefinition
from pai.errors import Fault, InvalidInput, PluginError
from pai.lifecycle import Hook, broken_hook, wrong_answer
from pai.loop._episode import Episode
from pai.protocol import Data, PluginEvent, ToolProgress
from pai.schema import JsonValue, check_json, parse_stable

__all__ = (
    "asked_aside",
    "check_stream_data",
    "emit",
    "error_text",
    "registered",
    "suspend_payload",
    "write_data",
    "write_progress",
)


def registered(episode: Episode, name: str, value: object) -> JsonValue:
    """
    The value of a data part as its schema in ``ui_data`` has it.

    Raises:
        InvalidInput: The name is not registered, or the value does not fit.
    """
    schema = episode.agent.definition.ui_data.get(name)
    if schema is None:
        known = ", ".join(sorted(episode.agent.definition.ui_data)) or "none"
        raise InvalidInput(
            [Fault(name, f"is no data part of this agent; declared in ui_data: {known}")],
            subject="data part",
        )
    return parse_stable(schema, value, at=name)


def check_stream_data(episode: Episode, data: Data) -> None:
    """Data in a model's stream fits its schema; under a name that is not ours it is native."""
    if data.name in episode.agent.definition.ui_data:
        data.value = registered(episode, data.name, data.value)


def write_data(
    episode: Episode, name: str, value: object, id_: str | None, transient: bool
) -> None:
    """Check a data part, send it on and, unless it is transient, keep it in the message."""

    def write() -> None:
        checked = _aside(
            episode, "data", registered(episode, name, value), name,
            lambda changed: registered(episode, name, changed),
        )  # fmt: skip
        journal = episode.journal
        journal.check()
        for event in episode.draft.begin():
            journal.hold(event)
        data = Data(name, checked, id_, transient)
        journal.add([data])
        if not transient:
            episode.draft.add(data)

    _on_loop(episode, write)


def write_progress(
    episode: Episode, call_id: str, tool: ToolDefinition[Any], value: object
) -> None:
    """Check what a tool reports and send it on."""
    schema = tool.data

    def fits(value: object) -> JsonValue:
        return (
            _json(value, "progress")
            if schema is None
            else parse_stable(schema, value, at="progress")
        )

    def write() -> None:
        checked = _aside(episode, "progress", fits(value), tool.name, fits)
        episode.journal.add([ToolProgress(call_id, checked)])

    _on_loop(episode, write)


def emit(episode: Episode, name: str, value: object) -> None:
    """Send on a plugin's event."""

    def fits(value: object) -> JsonValue:
        return _json(value, name)

    def write() -> None:
        checked = _aside(episode, "plugin", fits(value), name, fits)
        episode.journal.add([PluginEvent(name, checked)])

    _on_loop(episode, write)


def error_text(episode: Episode, text: str, tool: str) -> str:
    """The error of a call, as the model and clients are told it."""
    if not episode.agent.chains.transform_aside:
        return text
    return str(_aside(episode, "error", text, tool, _text))


def suspend_payload(episode: Episode, payload: JsonValue, tool: str) -> JsonValue:
    """What is shown of a call that waits, as it may be written."""
    if not episode.agent.chains.transform_aside:
        return payload

    def fits(value: object) -> JsonValue:
        return _json(value, "payload")

    return _aside(episode, "suspend", payload, tool, fits)


def _json(value: object, at: str) -> JsonValue:
    if faults := check_json(value, at=at):
        raise InvalidInput(faults, subject=at)
    return value  # type: ignore[return-value]  # checked just above


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput([Fault("value", "an error is text")])
    return value


def _aside(
    episode: Episode,
    kind: Literal["data", "progress", "plugin", "error", "suspend"],
    value: JsonValue,
    name: str,
    fits: Callable[[object], JsonValue],
) -> JsonValue:
    """
    What ``transform_aside`` makes of a value; it is checked after each.

    Raises:
        PluginError: A hook raised or gave what does not fit; the run fails, also where the code
            that wrote the value hides the error.
    """
    for hook in episode.agent.chains.transform_aside:
        try:
            value = asked_aside(hook, AsideItem(kind, value, name), episode.context, fits)
        except PluginError as error:
            episode.broken = episode.broken or error
            raise
    return value


def asked_aside(
    hook: Hook, item: AsideItem, run: Any, fits: Callable[[object], JsonValue]
) -> JsonValue:
    """What one hook makes of an item; *run* is ``None`` where there is none yet."""
    try:
        answer = hook.call(item, run)
        if answer is None:
            return item.value
        if isinstance(answer, ReplaceValue):
            return fits(answer.value)
    except PluginError:
        raise
    except Exception as error:
        raise broken_hook(hook, error) from error
    raise wrong_answer(hook, answer, "None or ReplaceValue")


def _on_loop(episode: Episode, write: Callable[[], None]) -> None:
    """Write on the event loop's thread, where hooks run and the journal is."""
    if threading.get_ident() == episode.loop_thread:
        write()
        return
    import anyio.from_thread

    anyio.from_thread.run_sync(write)
