"""What is done to a thread beside its runs: a new title, other metadata, and its deletion."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from pai.contexts import AsideItem, ThreadRef
from pai.definition import MetadataPatch, MetadataSchemas, StoredMetadata
from pai.errors import Fault, InvalidInput, LeaseLost, PluginError
from pai.lifecycle import broken_hook, error_of
from pai.loop import BoundAgent, asked_aside
from pai.protocol import Merge, ThreadChange, ThreadKey, ThreadRecord
from pai.runtime._limits import Limits, text_faults
from pai.runtime._records import RecordSource

if TYPE_CHECKING:
    from pai.runtime._core import Core

__all__ = ("change_of", "delete", "rename")

_TELLING = 10.0
"""Seconds that the observers of a deletion have together."""


async def rename(core: Core, agent: BoundAgent, key: ThreadKey, title: str, limits: Limits) -> None:
    """
    Give a thread a title, as a person does (A-TITLE-3).

    Raises:
        InvalidInput: The title does not fit.
        PluginError: A hook raised, or made of it what does not fit.
        ThreadNotFound: There is no such thread.
    """
    fits = partial(_title, limits)
    title = fits(title)
    for hook in agent.chains.transform_aside:
        title = str(asked_aside(hook, AsideItem("rename", title), None, fits))
    await core.update(key, agent.key, ThreadChange(title, "manual"))


def _title(limits: Limits, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput([Fault("title", "expected a text that is not blank")], subject="rename")
    faults = text_faults(value, "title", limits.title_length)
    if "\x00" in value:
        faults.append(Fault("title", "has a NUL character: no database keeps one"))
    if faults:
        raise InvalidInput(faults, subject="rename")
    return value


def change_of(
    schemas: MetadataSchemas[Any, Any] | None,
    private: Mapping[str, object] | None,
    public: Mapping[str, object] | None,
    *,
    replace: bool,
    at: str,
    whose: str = "the agent",
) -> Merge | None:
    """
    How stored bags become what a caller says; ``None`` where that is nothing.

    Args:
        schemas: What the bags must fit.
        private: Keys to set in the private bag; ``None``: it stays.
        public: The same for the public one.
        replace: A bag that is given becomes just this.
        at: How faults name the bags.
        whose: Who would have to declare the schemas.

    Raises:
        InvalidInput: Nobody declares no schemas, or these are no keys and values.
    """
    given: dict[str, object] = {"private": private, "public": public}
    faults = [
        Fault(f"{at}.{name}", f"expected a mapping, got {type(bag).__name__}")
        for name, bag in given.items()
        if bag is not None and not isinstance(bag, Mapping)
    ]
    if faults:
        raise InvalidInput(faults, subject="metadata")
    if not (private or public or (replace and (private is not None or public is not None))):
        return None
    if schemas is None:
        raise InvalidInput([Fault(at, f"{whose} declares no schemas for it")], subject="metadata")
    if replace:
        return partial(schemas.replaced, private=private, public=public, at=at)
    return partial(schemas.patched, patch=MetadataPatch(private or {}, public or {}), at=at)


async def delete(core: Core, agent: BoundAgent, key: ThreadKey) -> None:
    """
    Delete a thread and all that is of it, and tell the observers (R-16).

    Raises:
        ThreadNotFound: There is no such thread.
    """
    children = await _children(core, key, agent.key)
    head = await core.delete(key, agent.key, children)
    # It has happened: they are told, even if the caller waits no more.
    for gone in (*children, head):
        of_agent = core.agents[gone.agent]
        if not of_agent.chains.thread_deleted:
            continue
        with anyio.move_on_after(_TELLING, shield=True) as scope:
            await _tell(core, of_agent, gone)
        if scope.cancel_called:
            late = TimeoutError(f"observers of thread_deleted took more than {_TELLING:g} s")
            core.report(late, {"thread_id": gone.key.thread_id})


async def _children(core: Core, key: ThreadKey, agent: str) -> list[ThreadRecord]:
    """The threads of subagents, and of theirs, that go with a thread: nobody else knows of them."""
    found: list[ThreadRecord] = []
    for child, of_agent in await core.children.of_thread(key, agent):
        found += await _children(core, child, of_agent)
        head = await core.store.head(child)
        if head is not None:
            found.append(head)
    return found


async def _tell(core: Core, agent: BoundAgent, head: ThreadRecord) -> None:
    key = head.key
    bags = StoredMetadata(agent.definition.thread_metadata).read(head.metadata).bags
    thread = ThreadRef(key.thread_id, head.title, head.title_source, bags, head.created_at)
    # Nothing may be written under its key any more: these are the rows that are of no thread.
    source = RecordSource(core.store, ThreadKey(key.partition, ""))
    for hook in agent.chains.thread_deleted:
        try:
            answer = hook.call(thread, source)
            if inspect.isawaitable(answer):
                await answer
        except BaseException as error:
            broken = error_of(hook, error)
            if isinstance(broken, LeaseLost):
                broken = broken_hook(hook, error)
            if not isinstance(broken, PluginError):
                raise
            if broken is not error:
                broken.__cause__ = error
            core.report(broken, {"thread_id": key.thread_id})
