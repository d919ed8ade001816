"""The runtime an application holds: :func:`create_pai`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Generic, Never, Self, TypeVar

import anyio
import anyio.abc
import attrs

from pai.contexts import Records
from pai.definition import AgentDefinition, StoredMetadata
from pai.errors import DefinitionError, Fault, InvalidInput, StoreError, UnknownOptionError
from pai.lifecycle import (
    Lifecycle,
    LoadedPlugins,
    PluginReport,
    compose_lifecycle,
    load_plugins,
    plugin_name,
)
from pai.loop import BoundAgent
from pai.ports import Engine, RecordScope, Store
from pai.protocol import ThreadKey, ThreadSummary, new_id
from pai.runtime._bindings import bind_capabilities
from pai.runtime._children import CoreChildren, with_subagents
from pai.runtime._core import Core, ErrorHandler
from pai.runtime._drivers import transport_faults
from pai.runtime._engines import open_engine
from pai.runtime._limits import Limits
from pai.runtime._thread import ThreadHandle
from pai.schema import check_json
from pai.stores import open_store

__all__ = ("Page", "Pai", "create_agent_runtime", "create_pai")

ItemT = TypeVar("ItemT")

Key = Callable[[Never], str]
"""Takes an identity, as the agent's ``identity`` class describes it."""


@attrs.frozen(eq=False)
class Page(Generic[ItemT]):
    """
    A page of a list.

    Attributes:
        items: In order.
        after: Give this to get the next page; ``None`` on the last one.
    """

    items: tuple[ItemT, ...]
    after: str | None


class Pai:
    """A runtime. Use it as ``async with create_pai(...) as app``: it works as long as it is open."""

    def __init__(
        self,
        agents: Mapping[str, BoundAgent],
        store: Store,
        engine: Engine,
        *,
        scope_key: Callable[[Any], str] | None,
        actor_key: Callable[[Any], str] | None,
        lease: float,
        keep_deltas: float | None,
        max_runs: int | None,
        work: bool,
        limits: Limits,
        on_runtime_error: ErrorHandler | None,
        plugins: tuple[PluginReport, ...],
    ) -> None:
        self.plugins: Final = plugins
        """What became of the installed plugins that were to be loaded, in their order (R-36)."""
        self._agents: Final = agents
        self._scope_key: Final = scope_key
        self._actor_key: Final = actor_key
        self._limits: Final = limits
        self._core: Final = Core(
            store,
            engine,
            agents,
            lease=lease,
            max_runs=max_runs,
            works=work,
            keep_deltas=keep_deltas,
            on_error=on_runtime_error,
        )
        self._core.children = CoreChildren(self._core)
        self._group: anyio.abc.TaskGroup | None = None

    @property
    def agents(self) -> tuple[str, ...]:
        """The keys of the agents."""
        return tuple([key for key in self._agents if "/" not in key])

    @property
    def durable(self) -> bool:
        """Whether the store outlives this process, and others can share it."""
        return self._core.store.durable

    def working(self, works: bool) -> Self:
        """
        Say anew whether runs are worked on here, whatever *work* said; before it is entered.

        Raises:
            StoreError: It is open already.
        """
        if self._core.is_open:
            raise StoreError("the runtime is open: say before whether it works on runs")
        self._core.works = works
        return self

    async def __aenter__(self) -> Self:
        group = anyio.create_task_group()
        await group.__aenter__()
        try:
            await self._core.open(group)
        except BaseException:
            group.cancel_scope.cancel()
            # Told of the error, it would raise a group of it.
            await group.__aexit__(None, None, None)
            raise
        self._group = group
        for report in self.plugins:
            if report.error is not None:
                self._core.report(report.error, {"plugin": report.name})
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        group, self._group = self._group, None
        assert group is not None
        self._core.stop()
        with anyio.CancelScope(shield=True):
            await self._core.settled()
            try:
                await self._core.engine.close()
            finally:
                group.cancel_scope.cancel()
        try:
            await group.__aexit__(None, None, None)
        finally:
            with anyio.CancelScope(shield=True):
                await self._core.store.close()
        return None

    def thread(
        self,
        key: str,
        *,
        identity: object = None,
        thread_id: str | None = None,
        conversation_id: str | None = None,
    ) -> ThreadHandle:
        """
        A handle on a thread; nothing is read or written.

        Args:
            key: The agent's key in ``agents``.
            identity: Who it is for: what the agent's ``identity`` class describes (A-DEF-4).
            thread_id: The thread; one is made up if none is given.
            conversation_id: The old name of *thread_id*, which wins (O-5).

        Raises:
            InvalidInput: The identity does not fit, or the agent is not known.
        """
        agent = self._agent(key)
        if conversation_id is not None:
            warnings.warn(
                "conversation_id is deprecated: use thread_id", DeprecationWarning, stacklevel=2
            )
            thread_id = thread_id or conversation_id
        if thread_id is not None and not 0 < len(thread_id) <= 256:  # said in the text
            raise InvalidInput(
                [Fault("thread_id", "expected 1 to 256 characters")], subject="thread"
            )
        stored, partition, actor = self._place(agent, identity)
        return ThreadHandle(
            self._core,
            agent,
            ThreadKey(partition, thread_id or new_id()),
            stored,
            actor,
            self._limits,
        )

    async def threads(
        self, key: str, *, identity: object = None, limit: int = 20, after: str | None = None
    ) -> Page[ThreadSummary]:
        """
        The agent's threads in the identity's partition, the newest first.

        Args:
            key: The agent's key.
            identity: Whose partition.
            limit: Threads a page.
            after: The cursor of an earlier page.
        """
        agent = self._agent(key)
        _, partition, _ = self._place(agent, identity)
        stored = StoredMetadata(agent.definition.thread_metadata)
        records, cursor = await self._core.store.threads(partition, agent.key, limit, after)
        return Page(
            tuple(
                [
                    ThreadSummary(
                        record.key.thread_id,
                        record.title,
                        record.title_source,
                        stored.read(record.metadata).bags.shown(),
                        record.created_at,
                        record.updated_at,
                    )
                    for record in records
                ]
            ),
            cursor,
        )

    def records(
        self, plugin: object, *, partition: str = "default", thread_id: str | None = None
    ) -> Records:
        """
        A plugin's stored rows: JSON by key, deleted with their thread (R-42).

        Args:
            plugin: The plugin, or its name.
            partition: What ``scope_key`` gave for an identity.
            thread_id: Of which thread; ``None``: those of none.
        """
        name = plugin if isinstance(plugin, str) else plugin_name(plugin)
        return Records(self._core.store, RecordScope(partition, name, thread_id or ""))

    def _agent(self, key: str) -> BoundAgent:
        agent = self._agents.get(key)
        if agent is None:
            known = ", ".join(sorted([name for name in self._agents if "/" not in name]))
            raise InvalidInput(
                [Fault("agent", f"there is no agent {key!r}; agents: {known}")], subject="thread"
            )
        return agent

    def _place(self, agent: BoundAgent, identity: object) -> tuple[object, str, str | None]:
        """The identity as it is stored, its partition and its actor: from it alone (A-DEF-4)."""
        schema = agent.definition.identity
        value = identity
        stored: object = None
        if schema is not None:
            value = schema.parse(identity, at="identity")
            stored = schema.dump(value)
        elif identity is not None:
            if faults := check_json(identity, at="identity"):
                raise InvalidInput(faults, subject="identity")
            stored = identity
        if value is None:
            return None, "default", None
        partition = self._scope_key(value) if self._scope_key is not None else "default"
        actor = self._actor_key(value) if self._actor_key is not None else None
        return stored, partition, actor


def _watched(telemetry: Lifecycle, rest: Lifecycle) -> Lifecycle:
    """Telemetry left of the rest, once: it stands for an installed plugin of its name (A-DEF-5)."""
    own = {id(plugin) for plugin in telemetry.plugins}
    names = {plugin_name(plugin) for plugin in telemetry.plugins}
    kept = [
        plugin
        for plugin in rest.plugins
        if id(plugin) not in own
        and not (id(plugin) in rest.origins and rest.name_of(plugin) in names)
    ]
    return attrs.evolve(compose_lifecycle(telemetry, *kept), origins=rest.origins)


def create_pai(
    *,
    agents: Mapping[str, AgentDefinition[Any]],
    scope_key: Key | None = None,
    actor_key: Key | None = None,
    store: str | Store = "memory:",
    capabilities: Mapping[str, object] | None = None,
    plugins: Sequence[object] | Mapping[str, object] | None = None,
    strict: bool = False,
    engine: str | Engine = "embedded",
    stream: str = "store",
    work: bool = True,
    max_runs: int | None = None,
    lease: float = 15.0,
    keep_deltas: float | None = 600.0,
    limits: Limits | None = None,
    on_runtime_error: ErrorHandler | None = None,
    telemetry: object | None = None,
    **unknown: object,
) -> Pai:
    """
    Make a runtime. It opens its store when it is entered, with ``async with``.

    Args:
        agents: The agents by key; a thread belongs to the key that made it (A-RUN-5).
        scope_key: The partition of an identity (R-7).
        actor_key: The actor of an identity, recorded on runs.
        store: ``"memory:"``, ``"sqlite:///path"``, ``"postgresql://..."``, or a store.
        capabilities: A binding for each capability id that agents and plugins need (A-CAP-2).
        plugins: Plugins around each agent's own lifecycle, in this order: left of it, or right of
            it if they declare ``position = "last"``. Names of installed ones, objects, and dicts
            from names to options; ``()`` for none. ``None``: those that ``PAI_PLUGINS`` names, else
            all that are installed.
        strict: Raise if an installed plugin is broken, instead of reporting it (R-36).
        engine: ``"embedded"``, the name of an installed one (``"procrastinate"``), or an engine.
        stream: ``"store"``.
        work: ``False`` accepts and watches, and runs nothing.
        max_runs: Runs worked on at once in this process; ``None``: no limit.
        lease: Seconds a worker may be silent before others take its run (R-4).
        keep_deltas: Seconds that a database keeps the pieces in which a run's texts were streamed,
            after the run's end; then each text is one piece. ``None``: for good.
        limits: Limits on what comes from outside (R-39).
        on_runtime_error: Takes every error whole, as its one argument (A-RUN-3).
        telemetry: A plugin that stands left of all others, around every agent: what
            ``pai_otel.otel()`` gives. An installed plugin of its name is left out for it.

    Raises:
        UnknownOptionError: An option nobody knows.
        DefinitionError: A bad agent, lifecycle, plugin option or store address; all faults at once.
        CapabilityBindingError: Bindings are missing or surplus; all of them at once.
        PluginError: An installed plugin is broken, and *strict* is set.
    """
    strangers = [Fault(name, "is no option of create_pai") for name in unknown]
    if strangers:
        raise UnknownOptionError(strangers, subject="create_pai")
    faults = []
    if stream != "store":
        faults.append(Fault("stream", f"{stream!r} is not available: 'store'"))
    if not lease > 0:
        faults.append(Fault("lease", "expected a number of seconds above 0"))
    if keep_deltas is not None and not keep_deltas >= 0:
        faults.append(Fault("keep_deltas", "expected a number of seconds, or None"))
    if max_runs is not None and max_runs < 1:
        faults.append(Fault("max_runs", "expected at least 1"))
    if not agents:
        faults.append(Fault("agents", "expected at least one agent"))
    given: Mapping[str, object] = agents
    for key, item in given.items():
        if not isinstance(item, AgentDefinition):
            faults.append(Fault(f"agents.{key}", "expected what define_agent() returned"))
    loaded = LoadedPlugins()
    try:
        loaded = load_plugins(plugins, strict=strict)
    except DefinitionError as error:
        faults += error.faults
    watching = Lifecycle(())
    if telemetry is not None:
        try:
            watching = compose_lifecycle(telemetry)
        except DefinitionError as error:
            faults += [fault.under("telemetry") for fault in error.faults]
    lifecycles = {}
    for key, item in agents.items():
        if isinstance(item, AgentDefinition):
            try:
                lifecycles[key] = _watched(watching, loaded.around(item.lifecycle))
            except DefinitionError as error:
                faults += [fault.under(f"agents.{key}.lifecycle") for fault in error.faults]
            faults += transport_faults(key, item)
    nested, nested_lifecycles = with_subagents(agents, lifecycles, watching, faults)
    opened = waking = None
    try:
        opened = open_store(store) if isinstance(store, str) else store
        waking = open_engine(engine, opened)
    except DefinitionError as error:
        faults += error.faults
    if faults or opened is None or waking is None:
        raise DefinitionError(faults, subject="create_pai")
    every, lifecycles = {**agents, **nested}, {**lifecycles, **nested_lifecycles}
    bindings = bind_capabilities(every, lifecycles, capabilities or {})
    return Pai(
        {key: BoundAgent(key, item, lifecycles[key], bindings) for key, item in every.items()},
        opened,
        waking,
        scope_key=scope_key,
        actor_key=actor_key,
        lease=lease,
        keep_deltas=keep_deltas,
        max_runs=max_runs,
        work=work,
        limits=limits or Limits(),
        on_runtime_error=on_runtime_error,
        plugins=loaded.reports,
    )


def create_agent_runtime(*, agent: AgentDefinition[Any], **options: Any) -> Pai:
    """Make a runtime for one agent, whose key is its name; options as in :func:`create_pai`."""
    return create_pai(agents={agent.name: agent}, **options)
