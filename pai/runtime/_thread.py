"""A handle on a thread: send, watch, look."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pai.definition import ClientTool, RunOptions
from pai.errors import Fault, InvalidInput, ThreadNotFound, UnknownOptionError
from pai.loop import BoundAgent
from pai.protocol import Event, Message, ThreadChange, ThreadKey, ThreadState, new_id
from pai.runtime._accepting import Accepting, Asked, Content, WhenBusy, WhenPending
from pai.runtime._command import run_command
from pai.runtime._edit import change_of, delete, rename
from pai.runtime._event_stream import EventStream
from pai.runtime._limits import Limits
from pai.runtime._run_handle import RunHandle
from pai.runtime._starting import find_run, start_run
from pai.runtime._state import thread_state
from pai.schema import JsonValue

if TYPE_CHECKING:
    from pai.runtime._core import Core

__all__ = ("ThreadHandle",)


class ThreadHandle:
    """
    A thread of an agent. The handle touches nothing by itself; the first run makes the thread.

    Attributes:
        id: The thread's id.
    """

    def __init__(
        self,
        core: Core,
        agent: BoundAgent,
        key: ThreadKey,
        identity: object,
        actor: str | None,
        limits: Limits,
    ) -> None:
        self._core: Final = core
        self._agent: Final = agent
        self._key: Final = key
        self._accepting: Final = Accepting(core, agent, key, identity, actor, limits)
        self.id: Final = key.thread_id

    # ------------------------------------------------------------------ runs

    async def send(
        self,
        content: Content,
        *,
        run_id: str | None = None,
        options: RunOptions | Mapping[str, object] | None = None,
        client_data: object = None,
        client_tools: Sequence[ClientTool] = (),
        metadata: Mapping[str, object] | None = None,
        when_busy: WhenBusy = "queue",
        when_pending: WhenPending = "reject",
        **unknown: object,
    ) -> RunHandle:
        """
        Send a user's message and start a run, after those that wait already.

        Args:
            content: Text, or parts.
            run_id: The run's id; the same id with the same request is the same run (O-18).
            options: Options of this run; a mapping has their JSON form.
            client_data: What the agent's ``client_data`` describes: untrusted.
            client_tools: Tools that the client runs, for this run only (A-TOOL-8).
            metadata: For observability only: hooks see it, no provider does (O-9).
            when_busy: ``"queue"`` waits behind the runs that the thread has already; ``"reject"``
                raises if it has one; ``"interrupt"`` cancels the active one, which keeps what it
                had (R-2).
            when_pending: Where the active run waits for answers, ``"reject"`` raises and
                ``"supersede"`` denies its calls and ends it (R-3a).

        Raises:
            InvalidInput: Something does not fit; nothing was written.
            UnknownOptionError: An option nobody knows.
            ThreadNotFound: The thread belongs to another agent.
            ThreadBusy: It is busy, and *when_busy* is ``"reject"``.
            CallsPending: Its active run waits for answers, and *when_pending* is ``"reject"``.
            AnswerConflict: The run's id is taken by another request.
        """
        _refuse(unknown, "send")
        asked = Asked(
            "send", run_id, options, client_data, client_tools, metadata, when_busy, when_pending
        )
        own = run_id or new_id()
        message, respond = await self._accepting.message(content, own)
        return await start_run(self._accepting, asked, own, message, respond)

    async def trigger(
        self,
        *,
        run_id: str | None = None,
        options: RunOptions | Mapping[str, object] | None = None,
        client_data: object = None,
        client_tools: Sequence[ClientTool] = (),
        metadata: Mapping[str, object] | None = None,
        when_busy: WhenBusy = "queue",
        when_pending: WhenPending = "reject",
        **unknown: object,
    ) -> RunHandle:
        """Start a run without a user's message; arguments and errors are those of :meth:`send`."""
        _refuse(unknown, "trigger")
        asked = Asked(
            "trigger", run_id, options, client_data, client_tools, metadata, when_busy, when_pending
        )
        return await start_run(self._accepting, asked, run_id or new_id())

    async def regenerate(
        self,
        message_id: str | None = None,
        *,
        run_id: str | None = None,
        options: RunOptions | Mapping[str, object] | None = None,
        client_data: object = None,
        client_tools: Sequence[ClientTool] = (),
        metadata: Mapping[str, object] | None = None,
        when_busy: WhenBusy = "queue",
        when_pending: WhenPending = "reject",
        **unknown: object,
    ) -> RunHandle:
        """
        Answer again: what the thread shows from a message on is replaced when the run starts.

        What was replaced stays in the store, with its run; no later run sees it.

        Args:
            message_id: A message of the assistant is replaced, with all behind it; a user's message
                is kept and answered anew. ``None``: the last user's message is answered anew.
            run_id: As for :meth:`send`, like all that follows.

        Raises:
            ThreadNotFound: There is no such thread.
            InvalidInput: It shows no such message, or something does not fit.
        """
        _refuse(unknown, "regenerate")
        asked = Asked(
            "regenerate", run_id, options, client_data, client_tools, metadata, when_busy,
            when_pending,
        )  # fmt: skip
        snapshot = await self._core.store.snapshot(self._key, self._agent.key)
        if snapshot is None:
            raise ThreadNotFound(self.id)
        after = _kept(snapshot.messages, message_id)
        return await start_run(self._accepting, asked, run_id or new_id(), after=after)

    async def run(self, run_id: str) -> RunHandle:
        """
        A handle on a run of this thread.

        Raises:
            ThreadNotFound: There is no such run here.
        """
        handle = await find_run(self._accepting, run_id)
        if handle is None:
            raise ThreadNotFound(self.id)
        return handle

    # ------------------------------------------------------------------ beside the runs

    async def rename(self, title: str) -> None:
        """
        Give the thread a title; its source is ``manual`` (A-TITLE-3).

        A run under way goes on with the title that it began with.

        Args:
            title: At most :attr:`Limits.title_length` characters.

        Raises:
            InvalidInput: The title does not fit; nothing was written.
            PluginError: A ``transform_aside`` raised; nothing was written.
            ThreadNotFound: There is no such thread.
        """
        await rename(self._core, self._agent, self._key, title, self._accepting.limits)

    async def update_metadata(
        self,
        private: Mapping[str, object] | None = None,
        public: Mapping[str, object] | None = None,
        replace: bool = False,
    ) -> None:
        """
        Set keys of the thread's metadata.

        They are merged into what is stored at that moment, checked whole, both bags or neither
        (A-META-5).

        Args:
            private: Keys to set in the private bag.
            public: Keys to set in the public bag.
            replace: A bag that is given becomes just this, in place of the old one.

        Raises:
            InvalidInput: The result does not fit its schema; nothing was written.
            ThreadNotFound: There is no such thread.
        """
        schemas = self._agent.definition.thread_metadata
        merge = change_of(schemas, private, public, replace=replace, at="thread_metadata")
        change = ThreadChange(thread_metadata=merge)
        await self._core.update(self._key, self._agent.key, change)

    async def command(
        self, name: str, input: object = None, *, client_data: object = None
    ) -> JsonValue:
        """
        Run a command of the agent on this thread.

        Args:
            name: The command's name.
            input: What its input class describes, as an instance or as JSON; ``None`` is ``{}``.
            client_data: What the agent's ``client_data`` describes: untrusted.

        Returns:
            Its output, as JSON.

        Raises:
            InvalidInput: There is no such command, or input or client data do not fit; it did not
                run. Or the command raised it.
            ThreadNotFound: There is no such thread.
            CommandFailed: It raised what is no error of pai, or its output does not fit.
        """
        given = {} if input is None else input
        return await run_command(self._accepting, name, given, client_data)

    async def delete(self) -> None:
        """
        Delete the thread and every row of it, plugins' records included (R-16, R-42).

        A run under way is stopped and writes nothing more; those that wait vanish. Whoever watches
        the thread or a run of it is told by :class:`~pai.errors.ThreadNotFound`. A later send under
        the same id makes a new thread, which shares nothing with this one.

        Raises:
            ThreadNotFound: There is no such thread: it may have been deleted before.
        """
        await delete(self._core, self._agent, self._key)

    # ------------------------------------------------------------------ look and watch

    async def state(self) -> ThreadState:
        """
        The whole thread as of now; the events after its ``cursor`` are what comes next (R-25).

        Raises:
            ThreadNotFound: Nothing was ever sent here.
        """
        snapshot = await self._core.store.snapshot(self._key, self._agent.key)
        if snapshot is None:
            raise ThreadNotFound(self.id)
        return await thread_state(self._core.store, snapshot, self._agent.definition)

    def events(self, after: int = 0) -> AsyncIterator[Event]:
        """
        The thread's events; it never ends by itself.

        It raises :class:`~pai.errors.ThreadNotFound` when the thread is deleted, and where it is
        another agent's; before the first send it waits.

        Args:
            after: Only events numbered above this: a state's ``cursor``, or 0 for all.
        """
        return EventStream(self._core.hub(self._key), after, agent=self._agent.key)


def _refuse(unknown: Mapping[str, object], subject: str) -> None:
    """Options that nobody knows are refused by name."""
    faults = [Fault(name, "is no option here") for name in unknown]
    if faults:
        raise UnknownOptionError(faults, subject=subject)


def _kept(messages: Sequence[Message], message_id: str | None) -> str:
    """The last message that a regenerate keeps; empty if it keeps none."""
    if message_id is None:
        for message in reversed(messages):
            if message.role == "user":
                return message.id
        return ""
    before = ""
    for message in messages:
        if message.id == message_id:
            return message.id if message.role == "user" else before
        before = message.id
    fault = Fault("message_id", f"the thread shows no message {message_id!r}")
    raise InvalidInput([fault], subject="regenerate")
