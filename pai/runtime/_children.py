"""Runs of subagents: threads and rows of their own, started for a call of another run (O-20)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import attrs

from pai.definition import AgentDefinition
from pai.errors import DefinitionError, Fault, InvalidInput
from pai.lifecycle import Lifecycle, compose_lifecycle, plugin_name
from pai.loop import ChildRest, Episode
from pai.protocol import (
    Answer,
    Approve,
    Cancel,
    Deny,
    Event,
    Provide,
    ThreadKey,
)
from pai.runtime._limits import Limits
from pai.runtime._run_handle import RunHandle
from pai.runtime._thread import ThreadHandle
from pai.schema import JsonObject, JsonValue

if TYPE_CHECKING:
    from pai.runtime._core import Core

__all__ = ("ChildAgent", "Children", "child_agents")

_LONGEST_ID = 128


@attrs.frozen(eq=False)
class ChildAgent:
    """A subagent with a key of its own: that of the agent that calls it, and its name."""

    definition: AgentDefinition[Any]
    lifecycle: Lifecycle
    name: str
    depth: int


def child_agents(
    key: str, agent: AgentDefinition[Any], lifecycle: Lifecycle, faults: list[Fault], depth: int = 1
) -> dict[str, ChildAgent]:
    """
    The subagents of an agent, and theirs, by key.

    Around a subagent stand the plugins that it inherits by name, then its own: no installed one,
    unless it inherits it.
    """
    found: dict[str, ChildAgent] = {}
    for name, subagent in agent.subagents.items():
        at, child = f"agents.{key}.subagents.{name}", subagent.agent
        if not isinstance(child, AgentDefinition):
            faults.append(Fault(f"{at}.agent", "expected what define_agent() returned"))
            continue
        known = {plugin_name(plugin): plugin for plugin in lifecycle.plugins}
        for wanted in subagent.inherit:
            if wanted not in known:
                told = ", ".join(sorted(known)) or "none"
                faults.append(Fault(f"{at}.inherit", f"no plugin {wanted!r}; plugins: {told}"))
        inherited = [known[wanted] for wanted in subagent.inherit if wanted in known]
        own = () if child.lifecycle is None else (child.lifecycle,)
        try:
            whole = compose_lifecycle(*inherited, *own)
        except DefinitionError as error:
            faults += [fault.under(f"{at}.lifecycle") for fault in error.faults]
            continue
        below = f"{key}/{name}"
        found[below] = ChildAgent(child, whole, name, depth)
        found |= child_agents(below, child, whole, faults, depth + 1)
    return found


class ChildRun:
    """A run of a subagent; see :class:`pai.loop.Child`."""

    def __init__(self, core: Core, key: ThreadKey, handle: RunHandle, after: int) -> None:
        self._core = core
        self._key = key
        self._handle = handle
        self._after = after

    @property
    def run_id(self) -> str:
        return self._handle.id

    @property
    def thread_id(self) -> str:
        return self._key.thread_id

    async def events(self) -> AsyncIterator[Event]:
        """What comes next, until it rests."""
        async for event in self._handle.events(after=self._after):
            self._after = event.seq
            yield event

    async def rest(self) -> ChildRest:
        """Where it rests."""
        result = await self._handle.result()
        record = await self._core.store.run(self._key, self.run_id)
        assert record is not None
        value: JsonValue = result.text
        if result.message is not None and result.output is not None:
            value = result.message.parts[-1].value  # type: ignore[union-attr]  # its output, as JSON
        pending: list[JsonObject] = [
            {
                "callId": call.call_id,
                "kind": call.kind,
                "tool": call.tool,
                "input": call.input,
                "payload": call.payload,
                "digest": call.digest,
            }
            for call in result.pending
        ]
        return ChildRest(result.status, value, result.usage, pending)

    async def answer(self, answers: JsonValue) -> None:
        """Resume it."""
        given = [_answer(item, index) for index, item in enumerate(_listed(answers))]
        await self._handle.resume(given)

    async def cancel(self, reason: str) -> None:
        """Cancel it."""
        await self._handle.cancel(reason)


_KINDS = {cls.__name__.lower(): cls for cls in (Approve, Deny, Provide, Cancel, Answer)}
_FIELDS = {"callId": "call_id", "questionId": "question_id"}


def _listed(answers: JsonValue) -> list[JsonValue]:
    if isinstance(answers, dict) and isinstance(answers.get("answers"), list):
        answers = answers["answers"]
    if not isinstance(answers, list):
        raise InvalidInput([Fault("answers", "expected a list of answers")], subject="resume")
    return answers


def _answer(item: JsonValue, index: int) -> Any:
    at = f"answers[{index}]"
    if not isinstance(item, dict) or item.get("type") not in _KINDS:
        kinds = ", ".join(sorted(_KINDS))
        raise InvalidInput([Fault(at, f"expected an object with a type: {kinds}")])
    fields = {_FIELDS.get(name, name): value for name, value in item.items() if name != "type"}
    make: Any = _KINDS[str(item["type"])]
    try:
        return make(**fields)
    except TypeError:
        raise InvalidInput([Fault(at, "has other fields than its type")]) from None


class Children:
    """
    Starts runs of subagents; see :class:`pai.loop.Children`.

    Args:
        core: Store and worker.
        limits: Limits on what comes in.
    """

    def __init__(self, core: Core, limits: Limits) -> None:
        self._core: Final = core
        self._limits: Final = limits

    def _handle(self, episode: Episode, name: str, child_id: str) -> tuple[ThreadHandle, str]:
        run, key = episode.claimed.run, episode.journal.key
        request: Mapping[str, Any] = run.request
        thread = ThreadHandle(
            self._core,
            self._core.agents[f"{episode.agent.key}/{name}"],
            ThreadKey(key.partition, _id(key.thread_id, run.id, child_id)),
            request.get("identity"),
            request.get("actor"),
            self._limits,
        )
        return thread, _id(run.id, child_id)

    async def start(self, episode: Episode, name: str, content: str, child_id: str) -> ChildRun:
        """A run with this id; one that is there already is the same."""
        run, partition = episode.claimed.run, episode.journal.key.partition
        thread, run_id = self._handle(episode, name, child_id)
        key = ThreadKey(partition, thread.id)
        after = 0
        if await self._core.store.run(key, run_id) is not None:
            # An earlier attempt at the call has told what came so far.
            after = (await thread.state()).cursor
        agent = self._core.agents[f"{episode.agent.key}/{name}"]
        request: Mapping[str, Any] = run.request
        handle = await thread.send(
            content,
            run_id=run_id,
            options={"parent_run_id": run.id},
            client_data=None if agent.definition.client_data is None else request.get("clientData"),
            metadata=request.get("metadata"),
        )
        return ChildRun(self._core, key, handle, after)

    async def cancel_all(self, episode: Episode, reason: str) -> None:
        """Cancel what the run's calls have started and not ended."""
        for name in episode.agent.definition.subagents:
            for call_id in episode.open_calls:
                thread, run_id = self._handle(episode, name, call_id)
                key = ThreadKey(episode.journal.key.partition, thread.id)
                if await self._core.store.run(key, run_id) is not None:
                    await self._core.cancel(key, run_id, reason)

    async def cancel_waiting(self, key: ThreadKey, run_id: str, reason: str) -> None:
        """Cancel what a run has started that was cancelled while it waited for answers."""
        record = await self._core.store.run(key, run_id)
        agent = None if record is None else self._core.agents.get(record.agent)
        if agent is None or not agent.definition.subagents:
            return
        for call in await self._core.store.calls(key, run_id):
            told = call.payload
            if (
                call.kind == "suspend"
                and isinstance(told, dict)
                and told.get("subagent") in agent.definition.subagents
            ):
                below = ThreadKey(key.partition, str(told.get("threadId")))
                await self._core.cancel(below, str(told.get("runId")), reason)


def _id(*parts: str) -> str:
    """An id made of others; a long one is told by its digest."""
    whole = ":".join(parts)
    if len(whole) <= _LONGEST_ID:
        return whole
    return blake2b(whole.encode(), digest_size=32).hexdigest()
