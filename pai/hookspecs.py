"""
Every hook, grouped by phase, each with the same card.

pluggy registers, checks names and arguments, and orders; :mod:`pai.lifecycle` runs. An
implementation takes any subset of a hook's arguments and may be sync or async (a sync one runs on
the event loop and must not block). Besides its own arguments each hook offers ``state``: the
plugin's own dict, for one episode in one process (R-34); two plugin objects never share one. What
must outlive that goes to ``records``: the plugin's stored rows, by its name, of the run's thread or
of its partition (:class:`pai.contexts.Records`); a write within a run is fenced as the run's own
are (R-42).

A plugin object may set ``hook_timeout``, in seconds: each of its async hooks but the two that make
streams must answer within it, else it has raised (R-35); :func:`pai.limits` does that for streams.
What hooks are handed is theirs to read: its attributes cannot be set. Cancellation passes through
hooks; one that hides it changes nothing, the run is cancelled all the same (R-35).

Reading a card: *Called* and *Not called* say when; *Order* how several implementations compose,
where "left" is the plugin named first; *Returns* what each answer means; *Raising* what an
exception does. Every hook fires alike on send, trigger, regenerate and resume (R-30).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pai.contexts import (
        AsideItem,
        Ask,
        DenyCall,
        Records,
        ReplaceInput,
        ReplaceValue,
        RequireApproval,
        Respond,
        RunContext,
        RunOutcome,
        RunPatch,
        SkipCall,
        StepContext,
        StepOutcome,
        StepPatch,
        ThreadRef,
        ToolCallContext,
        ToolFailure,
        ToolOutput,
        ToolResultContext,
    )
    from pai.ports import ModelRequest
    from pai.protocol import Message, StreamPart

__all__ = ("Hooks", "State", "hookimpl", "hookspec")

hookspec = pluggy.HookspecMarker("pai")
hookimpl = pluggy.HookimplMarker("pai")
"""Marks a function as the implementation of the hook it is named after."""

State = dict[str, object]
"""What ``state`` is: a plugin's own dict."""


class Hooks:
    """The hooks. A plugin implements the ones it needs, as functions or as methods."""

    # ------------------------------------------------------------------ a message arrives

    @hookspec
    def accept_message(
        self, message: Message, state: State, records: Records
    ) -> Message | Respond | None:
        """
        Look at a user's message before anything of it is written.

        Called:     in ``send``, in the caller's process, before the first write.
        Not called: for trigger, regenerate and resume, which bring no message.
        Order:      piped: each sees what those further left returned.
        Returns:    ``None`` keeps it; a message (``attrs.evolve(message, parts=...)``) replaces it;
                    ``Respond`` ends the run with that answer. Those further right are still asked
                    about the message, which is stored; the leftmost ``Respond`` counts.
        Raising:    ``send`` raises; nothing is written.

        Args:
            message: The message; its id and run id are final.
            state: Empty here: the episode has not begun.
            records: This plugin's rows of the thread, which need not be there yet.
        """

    # ------------------------------------------------------------------ a run starts

    @hookspec
    def prepare_run(
        self, run: RunContext[Any], state: State, records: Records
    ) -> RunPatch | Respond | None:
        """
        Decide how the run starts.

        Called:     once an episode, before anything else of it.
        Not called: again after a takeover: the committed patch is used (A-DEF-8).
        Order:      piped: ``run.patch`` is what those further left decided.
        Returns:    ``None`` changes nothing; ``RunPatch`` holds for the episode; ``Respond`` ends
                    the phase, so that those further right are not asked, and the run (A-LIFE-3).
        Raising:    the run fails; the error names plugin, distribution and phase (R-33).

        Args:
            run: The run.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    # ------------------------------------------------------------------ each step

    @hookspec
    def prepare_model_step(
        self, step: StepContext[Any], state: State, records: Records
    ) -> StepPatch | Respond | Ask | None:
        """
        Decide what the model sees in this step.

        Called:     before each model call of the loop.
        Not called: for a run that ``prepare_run`` answered.
        Order:      piped: ``step.request`` has what those further left patched.
        Returns:    ``None`` changes nothing; ``StepPatch`` holds for this step; ``Respond`` ends
                    the phase and the run with that message; ``Ask`` suspends the run until it is
                    answered, and then the phase begins again.
        Raising:    the run fails (R-33).

        Args:
            step: The step.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    @hookspec
    def wrap_model_call(  # type: ignore[empty-body]  # a card, never called
        self,
        step: StepContext[Any],
        call_model: Callable[[ModelRequest], AsyncIterator[StreamPart]],
        state: State,
        records: Records,
    ) -> AsyncIterator[StreamPart]:
        """
        Stand around the call of the model: another model, another try, a cache.

        Called:     once a step, with ``step.request`` final.
        Not called: for synthetic answers.
        Order:      an onion: the leftmost is outermost, and ``call_model`` is the next one inside.
        Returns:    an async iterator of stream parts; usually this is an async generator function.
                    ``call_model(request)`` may be made any number of times. What was yielded before
                    a second call is void after a ``StepReset``. All layers are closed when the step
                    is over; close one that is given up earlier with ``contextlib.aclosing``.
        Raising:    a ``ModelError`` fails the run with its code, as would the model's own;
                    anything else fails it as this plugin's error (R-33).

        Args:
            step: The step.
            call_model: Makes the call.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    @hookspec
    def transform_step_stream(  # type: ignore[empty-body]  # a card, never called
        self,
        step: StepContext[Any],
        stream: AsyncIterator[StreamPart],
        state: State,
        records: Records,
    ) -> AsyncIterator[StreamPart]:
        """
        Make the canonical output of a step: what is shown, stored and sent to later steps (A-LIFE-6).

        Called:     once a step, also for synthetic answers (R-26).
        Not called: never left out.
        Order:      chained: the leftmost is nearest the model, the rightmost has the last word.
        Returns:    an async iterator of stream parts; usually this is an async generator function.
                    On ``StepReset`` drop what is held back and pass it on.
        Raising:    the run fails (R-33).

        Args:
            step: The step.
            stream: What comes from further left.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    # ------------------------------------------------------------------ each tool call

    @hookspec
    def rewrite_tool_input(
        self, call: ToolCallContext[Any], state: State, records: Records
    ) -> ReplaceInput | None:
        """
        Change the input of a call before anybody decides on it.

        Called:     for each call whose input fits the tool's schema.
        Not called: for provider-executed calls, unknown or disabled tools, and broken input.
        Order:      piped: each sees the input as those further left made it.
        Returns:    ``None`` keeps it; ``ReplaceInput`` replaces it, and it is checked again; one
                    that does not fit fails the call.
        Raising:    the run fails (R-33).

        Args:
            call: The call.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    @hookspec
    def before_tool_call(
        self, call: ToolCallContext[Any], state: State, records: Records
    ) -> SkipCall | DenyCall | RequireApproval | Ask | None:
        """
        Decide whether a call runs. Its input is final: what was allowed is what is executed (R-23).

        Called:     for each call, after all of ``rewrite_tool_input``; again after an answer to its
                    ``Ask``, or with the input that whoever approved has put in place.
        Not called: as ``rewrite_tool_input``.
        Order:      all are asked, in order; the strictest answer wins (deny, then require approval
                    or ask, then skip, then go on), and among equals the leftmost.
        Returns:    ``None`` lets it run; ``SkipCall`` gives it an output; ``DenyCall`` refuses it;
                    ``RequireApproval`` and ``Ask`` suspend the run, once its siblings have settled.
        Raising:    the run fails (R-33).

        Args:
            call: The call.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    @hookspec
    def after_tool_result(
        self, result: ToolResultContext[Any], state: State, records: Records
    ) -> ToolOutput | ToolFailure | None:
        """
        Have a say on how a call ended, before anybody sees it.

        Called:     for each settled call: run, skipped, denied or failed.
        Not called: for calls that were cut off, interrupted or cancelled.
        Order:      piped: each sees the result as those further left made it.
        Returns:    ``None`` keeps it; ``ToolOutput`` gives it an output, checked against the tool's
                    schema; ``ToolFailure`` makes it a failed one.
        Raising:    the run fails (R-33).

        Args:
            result: The result.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    # ------------------------------------------------------------------ beside the stream

    @hookspec
    def transform_aside(
        self, item: AsideItem, run: RunContext[Any] | None, state: State, records: Records | None
    ) -> ReplaceValue | None:
        """
        Change what is written beside the step's stream.

        That is data, progress, events of plugins, error texts, titles, labels of reasoning, and the
        texts of an answer of ``accept_message``.

        Called:     before the first write of each such item.
        Not called: for parts of the step's stream.
        Order:      piped: each sees the value as those further left made it.
        Returns:    ``None`` keeps it; ``ReplaceValue`` replaces it; data is checked again.
        Raising:    the item is not written and the run fails (R-33); of a title or a label, its job
                    is tried again.

        It is called where the item is written, so an implementation must be sync.

        Args:
            item: The item.
            run: The run it belongs to; ``None`` for what ``accept_message`` answered.
            state: This plugin's dict.
            records: This plugin's rows, for code that it starts: a sync hook can't wait for them.
        """

    # ------------------------------------------------------------------ observers

    @hookspec
    def run_started(self, run: RunContext[Any], state: State, records: Records) -> None:
        """
        See that a run has started.

        Called:     at the beginning of each episode, and after a takeover.
        Order:      left to right, each on its own.
        Returns:    ignored.
        Raising:    is reported and changes nothing (R-32).

        Args:
            run: The run.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    @hookspec
    def step_finished(
        self, step: StepContext[Any], outcome: StepOutcome, state: State, records: Records
    ) -> None:
        """
        See that a step is committed.

        The last one is committed with the run's end: nothing can be written for the run then.

        Called:     after each committed step, synthetic ones included.
        Not called: for what is kept of a step that the run's end cut short.
        Order:      left to right, each on its own.
        Returns:    ignored.
        Raising:    is reported and changes nothing (R-32).

        Args:
            step: The step.
            outcome: How it ended.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    @hookspec
    def tool_settled(self, result: ToolResultContext[Any], state: State, records: Records) -> None:
        """
        See that a call's result is committed.

        Called:     after each, also for calls that were cut off or interrupted.
        Order:      left to right, each on its own.
        Returns:    ignored.
        Raising:    is reported and changes nothing (R-32).

        Args:
            result: The result.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    @hookspec
    def run_settled(
        self, run: RunContext[Any], result: RunOutcome, state: State, records: Records
    ) -> None:
        """
        See that a run has ended, whatever its end.

        Nothing can be written for it any more. It is told at least once, also after a crash: another
        worker builds the run's context again then (R-33a). Use the run's id to see a second time.

        Called:     after the end is committed.
        Not called: for a run that was cancelled before a worker took it.
        Order:      left to right, each on its own; together they have 10 s.
        Returns:    ignored.
        Raising:    is reported and changes nothing (R-32).

        Args:
            run: The run.
            result: How it ended.
            state: This plugin's dict.
            records: This plugin's rows.
        """

    @hookspec
    def thread_deleted(self, thread: ThreadRef, state: State, records: Records) -> None:
        """
        See that a thread was deleted.

        Called:     after ``thread.delete()`` has committed the deletion.
        Order:      left to right, each on its own; together they have 10 s.
        Returns:    ignored.
        Raising:    is reported and changes nothing (R-32).

        Args:
            thread: What was deleted.
            state: Empty here.
            records: This plugin's rows of no thread, in the thread's partition; those of the thread
                are gone.
        """

    # ------------------------------------------------------------------ start-up

    @hookspec
    def register_lifecycle(self, options: object) -> object:
        """
        Give the plugin, or several, that an installed distribution brings.

        Called:     when a runtime is created, for each installed plugin.
        Order:      by the name of the entry point.
        Returns:    a plugin, a list of plugins, or ``None`` for the module itself.
        Raising:    the plugin is left out and reported (R-36).

        Args:
            options: The plugin's options.
        """

    @hookspec
    def register_cli(self, app: object) -> None:
        """
        Add commands to the ``pai`` script.

        Called:     when the script starts, for each installed plugin.
        Order:      by the name of the entry point.
        Returns:    ignored.
        Raising:    the plugin's commands are left out and reported.

        Args:
            app: The script's cyclopts application.
        """
