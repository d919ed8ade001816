"""What a tool is handed when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from pai.definition._signal import Signal
from pai.schema import JsonValue

__all__ = ("Capabilities", "ToolContext", "ToolHost")

ContextT_co = TypeVar("ContextT_co", covariant=True)


class Capabilities:
    """The bound capabilities of one tool or command, as attributes by alias."""

    __slots__ = ("_bound",)

    def __init__(self, bound: Mapping[str, object]) -> None:
        self._bound = bound

    def __getattr__(self, alias: str) -> object:
        try:
            return self._bound[alias]
        except KeyError:
            raise AttributeError(
                f"no capability is declared under the alias {alias!r};"
                f" declared: {', '.join(sorted(self._bound)) or 'none'}"
            ) from None


class ToolHost(Protocol):
    """What stands behind a tool's context: the loop that runs it."""

    def write_data(self, name: str, value: object, id: str | None, transient: bool) -> None: ...

    def progress(self, value: object) -> None: ...

    async def suspend(self, payload: object) -> object: ...

    async def run_agent(self, name: str, given: object) -> JsonValue: ...


class ToolContext(Generic[ContextT_co]):
    """
    The first argument of a tool.

    Attributes:
        context: The agent's runtime context, or what ``map_context`` made of it (A-TOOL-4).
        identity: Who the run is for.
        client_data: What the client sent along: untrusted.
        thread_id: The thread.
        run_id: The run.
        call_id: The call.
        idempotency_key: The same for each attempt at this call, unique to it (R-12).
        capabilities: Bound capabilities by alias.
        signal: Set when the run is to stop.
    """

    __slots__ = (
        "_host", "call_id", "capabilities", "client_data", "context", "idempotency_key",
        "identity", "run_id", "signal", "thread_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        context: ContextT_co,
        identity: object,
        client_data: object,
        thread_id: str,
        run_id: str,
        call_id: str,
        idempotency_key: str,
        capabilities: Capabilities,
        signal: Signal,
        host: ToolHost,
    ) -> None:
        self.context = context
        self.identity = identity
        self.client_data = client_data
        self.thread_id = thread_id
        self.run_id = run_id
        self.call_id = call_id
        self.idempotency_key = idempotency_key
        self.capabilities = capabilities
        self.signal = signal
        self._host = host

    def write_data(
        self,
        name: str,
        value: object,
        id: str | None = None,
        transient: bool = False,
    ) -> None:
        """
        Show an application data part (A-UI-1), from the event loop or from a worker thread.

        Args:
            name: A key of the agent's ``ui_data``.
            value: What its schema describes, as an instance or as JSON.
            id: A part of the same name and id is replaced.
            transient: Shown, not kept in the message.

        Raises:
            InvalidInput: The name is not registered, or the value does not fit (A-UI-2).
        """
        self._host.write_data(name, value, id, transient)

    def progress(self, value: object) -> None:
        """
        Say how far the tool is: a *tool-progress* event.

        Args:
            value: What the tool's ``data`` schema describes; any JSON where it has none.

        Raises:
            InvalidInput: The value does not fit.
        """
        self._host.progress(value)

    async def suspend(self, payload: object = None) -> Any:
        """
        Wait for an answer from outside: ``Provide(call_id, value)``; the run suspends (R-22).

        The body ends here, and is run again from its start when the answer has come: then the n-th
        call of this gives the n-th answer at once. What stands before must be safe to repeat.

        Args:
            payload: What is shown; the ``payload`` class of the tool's ``Suspend`` describes it.

        Returns:
            An instance of its ``answer`` class; JSON where the tool has no ``Suspend``.

        Raises:
            InvalidInput: The payload does not fit.
        """
        return await self._host.suspend(payload)

    async def run_agent(self, name: str, input: object) -> JsonValue:
        """
        Run a subagent of the agent, and wait for its end (O-20).

        Where it waits for an answer, this run waits for it, too: the body ends here and is run again
        from its start, as after :meth:`suspend`; the subagent itself goes on where it was.

        Args:
            name: A key of the agent's ``subagents``.
            input: What its input class describes; without one, ``SubagentTask(prompt)``.

        Returns:
            Its structured output, else its text.

        Raises:
            ToolError: It did not complete, or a limit stands against it.
            InvalidInput: There is no such subagent, or the input is none of its.
        """
        return await self._host.run_agent(name, input)
