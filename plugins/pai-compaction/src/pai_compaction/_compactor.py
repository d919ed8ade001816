"""Compaction within one episode: :class:`Compactor`."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pai import Message, ModelError, ModelRequest, RunContext, Usage
from pai_compaction._asking import Asker
from pai_compaction._budget import Budget
from pai_compaction._calibration import Calibration, model_name
from pai_compaction._clearing import Clearing
from pai_compaction._ledger import Ledger
from pai_compaction._marks import Marks, Row
from pai_compaction._rows import Records, Rows
from pai_compaction._sizer import Sizer
from pai_compaction._strategy import Strategy, Work
from pai_compaction._summary import Summary
from pai_compaction._tokenizer import Tokenizer
from pai_compaction._view import View, view_length, view_size

__all__ = ("Compactor", "Setup")

EVENT = "compaction"

_BATCH = 200
_BATCH_OF_HEAVY = 20
"""More messages than these are measured in a thread: others use the event loop as well."""


@attrs.frozen(eq=False)
class Setup:
    """
    What a plugin was told.

    Args:
        budget: How long requests may be.
        strategies: What makes them shorter, in order.
        tokenizer: Counts tokens.
        clearing: Which outputs can be cleared.
    """

    budget: Budget
    strategies: tuple[Strategy, ...]
    tokenizer: Tokenizer
    clearing: Clearing


class Compactor:
    """
    Keeps the requests of an episode short.

    What was compacted once stays so: a request is the one before and some more, which is what
    providers' caches want. The marks are stored, so that this holds for later runs as well.

    Args:
        setup: What the plugin was told.
        records: The plugin's stored rows of this thread, if there are any.
    """

    __slots__ = (
        "_calibration", "_failed", "_generation", "_ledger", "_marks", "_row", "_rows", "_setup",
        "_sizer", "_view",
    )  # fmt: skip

    def __init__(self, setup: Setup, records: Records | None) -> None:
        self._setup = setup
        self._sizer = Sizer(setup.tokenizer, setup.clearing)
        self._ledger = Ledger(self._sizer)
        self._rows = Rows(records)
        self._view = View()
        self._calibration = Calibration()
        self._row: Row | None = None
        self._marks = Marks()
        self._generation = -1
        self._failed: dict[int, str] = {}

    # ------------------------------------------------------------------ a step

    async def fit(self, request: ModelRequest, run: RunContext[object], ask: Asker) -> ModelRequest:
        """
        The request as it is to be sent: as far compacted as before, and further if it is too long.

        Args:
            request: The step's.
            run: The run; it is told of what is done.
            ask: Asks the model.
        """
        if self._setup.budget.limit is None and await self._stored() == Row():
            # Nobody wants to know how long it is.
            return request
        await self._follow(request.messages)
        model, around = model_name(request), self._sizer.around(request)
        before = self._tokens(model, around)
        budget = self._setup.budget
        if budget.exceeded_by(before):
            await self._compact(model, around, budget, "budget", run, ask)
        return self._as_seen(request)

    async def harder(
        self, request: ModelRequest, run: RunContext[object], ask: Asker
    ) -> ModelRequest | None:
        """
        A shorter request than the one that the model refused.

        Args:
            request: The step's.
            run: The run.
            ask: Asks the model.

        Returns:
            ``None`` if it can't be made shorter.
        """
        await self._follow(request.messages)
        model, around = model_name(request), self._sizer.around(request)
        budget = self._setup.budget.harder(self._tokens(model, around))
        shorter = await self._compact(model, around, budget, "overflow", run, ask)
        return self._as_seen(request) if shorter else None

    async def learn(self, request: ModelRequest, usage: Usage | None) -> None:
        """Take in what the provider counted for the request as it was sent."""
        if self._setup.budget.limit is None:
            return
        size = self._sizer.around(request) + view_size(self._ledger, self._marks)
        if self._calibration.learn(model_name(request), size, usage):
            await self._rows.put_state(self._row or Row(), self._calibration)

    # ------------------------------------------------------------------ inside

    async def _follow(self, messages: Sequence[Message]) -> None:
        """Take in the history as it is now, and find the marks in it."""
        row = await self._stored()
        ledger, tokenizer = self._ledger, self._setup.tokenizer
        batch = _BATCH_OF_HEAVY if tokenizer.heavy else _BATCH
        if not tokenizer.loaded or ledger.new(messages) > batch:
            from anyio import CapacityLimiter
            from anyio.to_thread import run_sync

            # A limiter of its own: it shall not wait for threads that do something long.
            await run_sync(self._measure, messages, limiter=CapacityLimiter(1))
        else:
            ledger.follow(messages)
        if self._generation != ledger.generation:
            self._generation = ledger.generation
            self._marks = Marks.of(row, ledger, await self._summary(row.summary))

    def _measure(self, messages: Sequence[Message]) -> None:
        self._setup.tokenizer.load()
        self._ledger.follow(messages)

    async def _stored(self) -> Row:
        """The marks of earlier steps and runs."""
        if self._row is None:
            self._row, self._calibration = await self._rows.state()
        return self._row

    async def _summary(self, covers: str | None) -> Summary | None:
        """The longest summary of this history: that one, or one it was made from."""
        ledger, seen = self._ledger, set[str]()
        while covers is not None and covers not in seen:
            seen.add(covers)
            summary = await self._rows.summary(covers)
            if summary is None:
                return None
            if summary.fits(ledger.messages) and summary.messages in ledger.cuts(0, 0):
                return summary
            covers = summary.extends
        return None

    async def _keep(self, summary: Summary) -> None:
        """Store a summary, and that it is the latest: more calls may follow, and fail."""
        await self._rows.put_summary(summary)
        row = attrs.evolve(self._row or Row(), summary=summary.covers)
        await self._rows.put_state(row, self._calibration)

    def _tokens(self, model: str, around: int) -> int:
        return self._calibration.tokens(model, around + view_size(self._ledger, self._marks))

    def _as_seen(self, request: ModelRequest) -> ModelRequest:
        if self._marks == Marks():
            return request
        return attrs.evolve(request, messages=self._view.messages(self._ledger, self._marks))

    async def _compact(
        self,
        model: str,
        around: int,
        budget: Budget,
        reason: str,
        run: RunContext[object],
        ask: Asker,
    ) -> bool:
        """Let the strategies work, one after the other, until the request is short enough."""
        assert budget.limit is not None
        assert budget.target is not None
        ledger, calibration = self._ledger, self._calibration
        before = self._tokens(model, around)
        work = Work(
            ledger,
            self._marks,
            around,
            calibration.size(model, budget.target),
            calibration.size(model, budget.room(before)),
            ask,
            self._keep,
        )
        used: list[str] = []
        failed: dict[str, str] = {}
        for strategy in self._setup.strategies:
            if work.size() <= calibration.size(model, budget.limit):
                break
            # One that failed is not asked again in this episode: its model would be, at each step.
            if id(strategy) in self._failed:
                continue
            marks = work.marks
            try:
                await strategy.apply(work)
            except ModelError as error:
                failed[strategy.name] = self._failed[id(strategy)] = error.code
            if work.marks is not marks:
                used.append(strategy.name)
        if used or failed:
            length = view_length(ledger, self._marks)
            self._marks = work.marks
            self._row = self._marks.to_row(ledger)
            await self._rows.put_state(self._row, calibration)
            run.emit(
                EVENT,
                {
                    "before": before,
                    "after": self._tokens(model, around),
                    "strategy": used,
                    "reason": reason,
                    "messages": {
                        "before": length,
                        "after": view_length(ledger, self._marks),
                    },
                    **({"failed": failed} if failed else {}),
                },
            )
        return bool(used)
