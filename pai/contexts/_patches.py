"""Patches: what hooks may change. Only what is set is applied (A-INSTR-2, A-MODEL-5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeVar

import attrs

from pai.definition import MetadataPatch
from pai.errors import Fault, InvalidInput
from pai.ports import ModelDriver
from pai.protocol import Message, ModelSettings, ProviderOptions, SystemMessage

__all__ = ("UNSET", "RunPatch", "StepPatch", "Unset", "merged")


class Unset:
    """The type of :data:`UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> Literal[False]:
        return False


UNSET: Final = Unset()
"""Nothing was said; for places where ``None`` is a value (O-19)."""


@attrs.frozen(eq=False, kw_only=True)
class _Patch:
    """
    What both patches can set.

    Args:
        model: A driver, or a name.
        model_settings: Replaces the settings whole.
        provider_options: Replaces the options whole.
        instructions: Replaces the instructions whole; lists are never merged.
        messages: What the model sees instead of the history; the thread's own stays.
        tools: Names of declared tools: a subset (A-TOOL-7).
        provider_tools: Names of declared provider tools: a subset.
        run_metadata: A sparse patch of the run's metadata (A-META-5), as for thread and message.
        message_metadata: For the assistant message of the run.
    """

    model: ModelDriver | str | Unset = UNSET
    model_settings: ModelSettings | Unset = UNSET
    provider_options: ProviderOptions | Unset = UNSET
    instructions: str | SystemMessage | Sequence[SystemMessage] | Unset = UNSET
    messages: Sequence[Message] | Unset = UNSET
    tools: Sequence[str] | Unset = UNSET
    provider_tools: Sequence[str] | Unset = UNSET
    run_metadata: MetadataPatch | Unset = UNSET
    thread_metadata: MetadataPatch | Unset = UNSET
    message_metadata: MetadataPatch | Unset = UNSET
    tool_choice: object = UNSET
    prompt_cache: object = UNSET
    output: object = UNSET

    def __attrs_post_init__(self) -> None:
        # Part of the run options: refused by name until they do something.
        faults = [
            Fault(name, "is not available yet: it comes with the run options")
            for name in ("tool_choice", "prompt_cache", "output", "stop_when", "wrap_transport")
            if getattr(self, name, UNSET) is not UNSET
        ]
        if faults:
            raise InvalidInput(faults, subject=type(self).__name__)


@attrs.frozen(eq=False, kw_only=True)
class RunPatch(_Patch):
    """
    A patch for the whole episode, from ``prepare_run``.

    Args:
        max_steps: Model steps the episode may take.
    """

    max_steps: int | Unset = UNSET
    stop_when: object = UNSET


@attrs.frozen(eq=False, kw_only=True)
class StepPatch(_Patch):
    """A patch for one step, from ``prepare_model_step``."""

    wrap_transport: object = UNSET


PatchT = TypeVar("PatchT", RunPatch, StepPatch)

_METADATA = ("run_metadata", "thread_metadata", "message_metadata")


def merged(left: PatchT | None, right: PatchT) -> PatchT:
    """
    Both patches as one: what *right* sets wins, metadata patches are joined key by key.

    Hooks further right have seen what those further left decided (A-LIFE-2).
    """
    if left is None:
        return right
    changes: dict[str, object] = {}
    for field in attrs.fields(type(left)):
        value = getattr(right, field.name)
        if value is UNSET:
            continue
        before = getattr(left, field.name)
        if field.name in _METADATA and before is not UNSET:
            value = MetadataPatch(
                private={**before.private, **value.private},
                public={**before.public, **value.public},
            )
        changes[field.name] = value
    return attrs.evolve(left, **changes)  # type: ignore[arg-type]  # fields of its own class
