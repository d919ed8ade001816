"""The plugin: its hook, its options, and :func:`prompt_cache`, which makes it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal, get_args

import attrs

from pai import DefinitionError, Fault, PromptCache, StepContext, StepPatch, hookimpl
from pai_prompt_cache._break import find_break
from pai_prompt_cache._key import DEFAULT_KEY, Key, MakeKey, key_of
from pai_prompt_cache._memory import Memory
from pai_prompt_cache._prefix import Chain, Head, Prefix

__all__ = (
    "Options",
    "PromptCaching",
    "Retention",
    "position",
    "prompt_cache",
    "register_lifecycle",
)

log = logging.getLogger("pai.prompt_cache")

EVENT = "prompt-cache"
"""The name of the plugin event."""

Retention = Literal["none", "short", "long"]
Choose = Callable[[StepContext[Any]], Retention]

position = "last"
"""Right of the agents' own plugins: what they change is part of the prefix."""


class PromptCaching:
    """Chooses retention and key of each step, and tells when the prefix broke."""

    name = "prompt-cache"
    position = position

    def __init__(self, choose: Choose, key: MakeKey, *, watch: bool) -> None:
        self._choose = choose
        self._key = key
        self._memory = Memory() if watch else None

    @hookimpl(trylast=True)
    def prepare_model_step(
        self, step: StepContext[Any], state: dict[str, object]
    ) -> StepPatch | None:
        """Choose; what the application or another plugin has chosen stays."""
        if self._memory is not None:
            self._watch(step, state, self._memory)
        if step.request.prompt_cache is not None:
            return None
        retention = self._choose(step)
        key = None if retention == "none" else self._key(step.run)
        return StepPatch(prompt_cache=PromptCache(retention, key or None))

    def _watch(self, step: StepContext[Any], state: dict[str, object], memory: Memory) -> None:
        request = step.request
        seen = state.get("chain")
        chain = Chain.of(request.messages, seen if isinstance(seen, Chain) else None)
        state["chain"] = chain
        prefix = Prefix(Head.of(request), chain.hashes)
        before = memory.swap(step.run, prefix)
        broken = None if before is None else find_break(before, prefix)
        if broken is not None:
            log.info("run %s step %d: the prefix broke at %s", step.run.id, step.index, broken.at)
            step.run.emit(EVENT, {"break": broken.as_json(step.index)})
        elif log.isEnabledFor(logging.DEBUG):
            log.debug(
                "run %s step %d: prefix %s, %d messages",
                step.run.id, step.index, prefix.hash, len(chain.hashes),
            )  # fmt: skip


def prompt_cache(
    retention: Retention | Choose = "short", key: Key = DEFAULT_KEY, *, watch: bool = True
) -> PromptCaching:
    """
    Make a plugin that asks providers to cache the beginning of requests.

    Put it right of the plugins that change requests.

    Args:
        retention: How long: a word, or a function of the step.
        key: What requests with a common beginning have in common: names of ids that the caller
            gave (``"agent"``, ``"thread"``, ``"identity"`` or one of its fields as in
            ``"identity.user_id"``), of which a hash is sent; or a function of the run, which gives
            the key itself; ``None``: no key.
        watch: Compare each step's prefix with that of the thread's last step, and tell of a break
            by the event ``prompt-cache`` (O-12).

    Raises:
        DefinitionError: An option is of another kind.
    """
    if not callable(retention) and retention not in get_args(Retention):
        words = ", ".join(get_args(Retention))
        raise DefinitionError(
            [Fault("retention", f"expected {words}, or a function of the step")],
            subject="prompt_cache",
        )
    choose = retention if callable(retention) else _always(retention)
    return PromptCaching(choose, key_of(key), watch=watch)


def _always(retention: Retention) -> Choose:
    return lambda step: retention


@attrs.frozen
class Options:
    """
    What a configuration file may say; see :func:`prompt_cache`.

    Args:
        retention: How long.
        key: Names of ids; none: no key.
        watch: Tell when the prefix broke.
    """

    retention: Retention = "short"
    key: list[str] = attrs.field(factory=lambda: list(DEFAULT_KEY))
    watch: bool = True


@hookimpl
def register_lifecycle(options: object) -> PromptCaching:
    """Give the plugin that the options describe."""
    chosen = options if isinstance(options, Options) else Options()
    return prompt_cache(chosen.retention, chosen.key, watch=chosen.watch)
