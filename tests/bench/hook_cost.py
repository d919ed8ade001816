"""
What hooks cost: ``python tests/bench/hook_cost.py``.

Prints µs a phase for ten plugins, less what the phase costs without any: hooks that return None
(the budget is 5 µs) and hooks that return a patch (60 µs).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import anyio

from pai import MetadataPatch, MetadataSchemas, RunPatch, StepPatch, define_agent, hookimpl
from pai.contexts import StepContext
from pai.lifecycle import compose_lifecycle
from pai.loop import BoundAgent, Episode, Journal, NoChildren
from pai.loop._prepare import build_context, prepare_run
from pai.loop._request import build_request, prepare_step
from pai.models import resolve_model
from pai.protocol import Message, RunRecord, TextPart, ThreadKey, ThreadRecord, new_id
from pai.stores import MemoryStore
from pai.testing import ScriptedModel

TIMES, PLUGINS = 3000, 10


class Plugin:
    """Answers both phases with fixed values."""

    def __init__(self, run: RunPatch | None = None, step: StepPatch | None = None) -> None:
        self.run_patch = run
        self.step_patch = step


class Sync(Plugin):
    @hookimpl
    def prepare_run(self, run):
        return self.run_patch

    @hookimpl
    def prepare_model_step(self, step):
        return self.step_patch


class Async(Plugin):
    @hookimpl
    async def prepare_run(self, run):
        return self.run_patch

    @hookimpl
    async def prepare_model_step(self, step):
        return self.step_patch


class WithState(Plugin):
    @hookimpl
    def prepare_run(self, run, state):
        return self.run_patch

    @hookimpl
    def prepare_model_step(self, state, step):
        return self.step_patch


class Made(Plugin):
    """Makes its patches anew, as plugins do."""

    @hookimpl
    def prepare_run(self, run):
        return RunPatch(instructions="be brief", provider_options={"x": {"y": 1}})

    @hookimpl
    def prepare_model_step(self, step):
        return StepPatch(instructions="be brief", provider_options={"x": {"y": 1}})


async def episode_of(plugins: list[object]) -> Episode:
    agent = define_agent(
        name="bench",
        model=ScriptedModel(),
        lifecycle=compose_lifecycle(*plugins),
        run_metadata=MetadataSchemas(private=dict[str, int], public=dict[str, int]),
    )
    bound = BoundAgent("bench", agent, compose_lifecycle(*plugins), {})
    store, key, now = MemoryStore(), ThreadKey("default", new_id()), datetime.now(UTC)
    run = RunRecord(new_id(), "bench", "1", "send", {}, "", now)
    message = Message(new_id(), "user", (TextPart("hi"),), run.id, now)
    head = ThreadRecord(key, "bench", run.metadata, now, now)
    accepted = await store.accept(head, run, message, [], claim=("bench", 60.0), started=[])
    claimed = accepted.claimed
    assert claimed is not None
    journal = Journal(store, key, run.id, claimed.fence, lambda *_: None, lambda *_: None)
    limiter = anyio.CapacityLimiter(1)
    episode = Episode(
        bound,
        claimed,
        journal,
        lambda *_: None,
        resolve_model,
        lambda: limiter,
        NoChildren(),
    )
    await build_context(episode)
    return episode


async def best(
    phase: Callable[[], Coroutine[Any, Any, object]], reset: Callable[[], None]
) -> float:
    """The least µs of one phase: what others do on the machine is not to be seen."""
    least = float("inf")
    for _ in range(TIMES):
        reset()
        started = time.perf_counter()
        await phase()
        least = min(least, time.perf_counter() - started)
    return least * 1e6


async def measured(plugins: list[object]) -> tuple[float, float]:
    """µs of ``prepare_run`` and of ``prepare_model_step``."""
    episode = await episode_of(plugins)
    request = await build_request(episode)
    steps: list[StepContext[Any]] = []

    def reset() -> None:
        episode.patch = None
        steps[:] = [StepContext(episode.context, 0, request, episode.usage)]

    return (
        await best(lambda: prepare_run(episode), reset),
        await best(lambda: prepare_step(episode, steps[0]), reset),
    )


async def main() -> None:
    none_run, none_step = await measured([])
    run = RunPatch(instructions="be brief", provider_options={"x": {"y": 1}})
    step = StepPatch(instructions="be brief", provider_options={"x": {"y": 1}})
    bag = MetadataPatch(public={"n": 1})
    cases: dict[str, Callable[[], object]] = {
        "None, sync": Sync,
        "None, async": Async,
        "None, with state": WithState,
        "patch, kept": lambda: Sync(run, step),
        "patch, made anew": Made,
        "patch of metadata": lambda: Sync(RunPatch(run_metadata=bag), StepPatch(run_metadata=bag)),
    }
    print(f"{PLUGINS} plugins, µs a phase over none    prepare_run  prepare_model_step")
    for name, make in cases.items():
        of_run, of_step = await measured([make() for _ in range(PLUGINS)])
        print(f"{name:38} {of_run - none_run:11.1f} {of_step - none_step:19.1f}")


if __name__ == "__main__":
    anyio.run(main)
