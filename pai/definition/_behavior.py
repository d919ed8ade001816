"""What the functions of an agent are handed."""

from __future__ import annotations

from typing import Generic, TypeVar

import attrs

from pai.definition._signal import Signal
from pai.schema import JsonValue

__all__ = ("AgentBehaviorInput", "ContextInput", "ObservedCall", "ObservedOutput", "ObservedTool")

ContextT = TypeVar("ContextT")


@attrs.frozen(eq=False)
class ContextInput:
    """
    What ``runtime_context`` is built from (A-CTX-1).

    Args:
        identity: An instance of the agent's ``identity`` class, computed and checked by the server.
        client_data: An instance of ``client_data``: untrusted, never a reason to grant access.
        thread_id: The thread; its id can repeat in another partition (A-CTX-3).
        signal: Set when the run is to stop.
    """

    identity: object
    client_data: object
    thread_id: str
    signal: Signal


@attrs.frozen(eq=False)
class AgentBehaviorInput(Generic[ContextT]):
    """What resolvers, ``enabled`` and ``map_context`` are handed (A-CTX-2)."""

    runtime_context: ContextT
    identity: object
    client_data: object
    thread_id: str
    signal: Signal


@attrs.frozen
class ObservedTool:
    """The tool of an observed call."""

    name: str


@attrs.frozen
class ObservedCall:
    """The observed call."""

    call_id: str


@attrs.frozen(eq=False)
class ObservedOutput(Generic[ContextT]):
    """What ``on_output`` is handed: the settled call of a tool (A-TOOL-5)."""

    runtime_context: ContextT
    identity: object
    client_data: object
    thread_id: str
    signal: Signal
    input: object
    output: JsonValue
    tool: ObservedTool
    call: ObservedCall
