"""Runs of subagents: runs of their own, on threads of their own (O-20)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import attrs

from pai.definition import AgentDefinition
from pai.errors import AnswerConflict, DefinitionError, Fault
from pai.lifecycle import Lifecycle, compose_lifecycle
from pai.loop import ChildEnd
from pai.protocol import Decision, Event, OutputPart, RunFinished, RunRecord, ThreadKey, child_id
from pai.runtime._accepting import Accepting, Asked
from pai.runtime._limits import Limits
from pai.runtime._run_handle import RunHandle
from pai.runtime._starting import find_run, start_run
from pai.schema import JsonObject, JsonValue

if TYPE_CHECKING:
    from pai.runtime._core import Core

__all__ = ("CoreChildren", "with_subagents")


def with_subagents(
    agents: Mapping[str, object],
    lifecycles: Mapping[str, Lifecycle],
    watching: Lifecycle,
    faults: list[Fault],
) -> tuple[dict[str, AgentDefinition[Any]], dict[str, Lifecycle]]:
    """
    The subagents of these agents, and theirs, with their lifecycles, by path: ``parent/name``.

    A subagent has its own lifecycle, with the plugins of its parent left of it that it inherits by
    name, and telemetry left of all: no other plugin stands around it.

    Args:
        agents: The agents by key.
        lifecycles: Their whole lifecycles.
        watching: Telemetry.
        faults: What is wrong is added.
    """
    found: dict[str, AgentDefinition[Any]] = {}
    around: dict[str, Lifecycle] = {}
    left = [(key, agent, lifecycles[key]) for key, agent in agents.items() if key in lifecycles]
    while left:
        key, agent, outer = left.pop()
        if not isinstance(agent, AgentDefinition):
            continue
        for name, item in agent.subagents.items():
            path = f"{key}/{name}"
            at = f"agents.{key}.subagents.{name}"
            if not isinstance(item.agent, AgentDefinition):
                continue
            by_name = {outer.name_of(plugin): plugin for plugin in outer.plugins}
            for wanted in item.inherit:
                if wanted not in by_name:
                    known = ", ".join(sorted(by_name)) or "none"
                    told = f"its parent has no plugin {wanted!r}; plugins: {known}"
                    faults.append(Fault(f"{at}.inherit", told))
            inherited = [by_name[wanted] for wanted in item.inherit if wanted in by_name]
            own = {id(plugin) for plugin in (*watching.plugins, *inherited)}
            try:
                lifecycle = item.agent.lifecycle
                inner = Lifecycle(()) if lifecycle is None else compose_lifecycle(lifecycle)
                kept = [plugin for plugin in inner.plugins if id(plugin) not in own]
                inherited = [
                    item for item in inherited if id(item) not in map(id, watching.plugins)
                ]
                made = compose_lifecycle(*watching.plugins, *inherited, *kept)
            except DefinitionError as error:
                faults += [fault.under(f"{at}.lifecycle") for fault in error.faults]
                continue
            whole = attrs.evolve(made, origins={**outer.origins, **inner.origins})
            found[path], around[path] = item.agent, whole
            left.append((path, item.agent, whole))
    return found, around


class CoreChildren:
    """Starts the runs of subagents in a runtime."""

    def __init__(self, core: Core) -> None:
        self._core: Final = core

    async def start(
        self,
        key: ThreadKey,
        run: RunRecord,
        agent: str,
        name: str,
        run_id: str,
        task: str,
        ref: JsonObject,
    ) -> _Child:
        request, own = run.request, ThreadKey(key.partition, run_id)
        actor = request.get("actor")
        # Who waits for it has room: it must not wait for more, nor for another process.
        self._core.room.lend(own)
        accepting = Accepting(
            self._core,
            self._core.agents[f"{agent}/{name}"],
            own,
            request.get("identity"),
            actor if isinstance(actor, str) else None,
            Limits(),
        )
        known = await find_run(accepting, run_id)
        if known is not None:
            self._core.drain_soon(own)
            return _Child(accepting, known)
        asked = Asked(
            "send", run_id, None, request.get("clientData"), (), None, parent_run_id=run.id,
            subagent=ref,
        )  # fmt: skip
        message, respond = await accepting.message(task, run_id)
        handle = await start_run(accepting, asked, run_id, message, respond)
        self._core.drain_soon(own)
        return _Child(accepting, handle)

    async def cancel(self, key: ThreadKey, run_id: str, reason: str) -> None:
        await self._core.cancel(key, run_id, reason)

    async def of_thread(self, key: ThreadKey, agent: str) -> list[tuple[ThreadKey, str]]:
        bound = self._core.agents.get(agent)
        if bound is None or not bound.definition.subagents:
            return []
        snapshot = await self._core.store.snapshot(key, agent)
        found: list[tuple[ThreadKey, str]] = []
        for run in [] if snapshot is None else snapshot.runs:
            for row in await self._core.store.calls(key, run.id):
                for place in count():
                    own = child_id(key.thread_id, run.id, row.call_id, place)
                    child_key = ThreadKey(key.partition, own)
                    record = await self._core.store.run(child_key, own)
                    if record is None:
                        break
                    found.append((child_key, record.agent))
        return found


class _Child:
    """The run of a subagent."""

    def __init__(self, accepting: Accepting, handle: RunHandle) -> None:
        self._accepting: Final = accepting
        self._handle: Final = handle
        self._room: Final = accepting.core.room
        self._key: Final = accepting.key
        self._after: int | None = None

    async def answer(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            try:
                seq = await self._accepting.decide(self._handle.id, [decision])
            except AnswerConflict:
                continue  # it has expired meanwhile, or was answered by a run before a crash
            if seq is not None:
                self._after = seq if self._after is None else self._after

    async def ended(self, tell: Callable[[Event], None]) -> ChildEnd:
        usage = None
        try:
            async for event in self._handle.events(after=self._after):
                tell(event)
                if isinstance(event, RunFinished):
                    usage = event.usage
            result = await self._handle.result()
        finally:
            self._room.forget(self._key)
        value: JsonValue = result.text
        if result.message is not None:
            for part in result.message.parts:
                if isinstance(part, OutputPart):
                    value = part.value
        return ChildEnd(result.status, value, result.reason, result.pending, usage)

    async def cancel(self, reason: str) -> None:
        await self._handle.cancel(reason)
