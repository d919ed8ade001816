"""Patches: what hooks may change. Only what is set is applied (A-INSTR-2, A-MODEL-5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Literal

import attrs

from pai.definition import MetadataPatch, StopWhen, as_prompt_cache, option_faults, output_faults
from pai.errors import Fault, InvalidInput
from pai.ports import ModelDriver
from pai.protocol import (
    FirstStep,
    Message,
    ModelSettings,
    PromptCache,
    ProviderOptions,
    SystemMessage,
    ToolChoice,
    WrapTransport,
)
from pai.schema import UNSET, Unset

__all__ = ("UNSET", "RunPatch", "StepPatch", "Unset", "merged")


# Not frozen: that costs a microsecond and more a patch, and hooks make one for each step.
@attrs.define(eq=False, kw_only=True, on_setattr=attrs.setters.NO_OP)
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
        prompt_cache: A wish for the provider's prompt cache (O-12).
        output: The structured output that is asked for: a name of the agent's ``outputs``, a class,
            or a JSON Schema; ``None``: none (O-11).
        run_metadata: A sparse patch of the run's metadata (A-META-5), as for thread and message.
        message_metadata: For the assistant message of the step; in a ``RunPatch``, of each step.

    Attributes:
        changes: What is set, by field.

    Raises:
        InvalidInput: Something of it can be no patch; all faults at once.
    """

    model: ModelDriver | str | Unset = UNSET
    model_settings: ModelSettings | Unset = UNSET
    provider_options: ProviderOptions | Unset = UNSET
    instructions: str | SystemMessage | Sequence[SystemMessage] | Unset = UNSET
    messages: Sequence[Message] | Unset = UNSET
    tools: Collection[str] | Unset = UNSET
    provider_tools: Collection[str] | Unset = UNSET
    run_metadata: MetadataPatch | Unset = UNSET
    thread_metadata: MetadataPatch | Unset = UNSET
    message_metadata: MetadataPatch | Unset = UNSET
    prompt_cache: PromptCache | Literal["none", "short", "long"] | Unset = attrs.field(
        default=UNSET, converter=as_prompt_cache
    )
    output: object = UNSET
    changes: Mapping[str, Any] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        names, values, checks = _FIELDS[type(self)]
        changes: dict[str, Any] = {}
        faults: list[Fault] = []
        for name, value, check in zip(names, values(self), checks, strict=True):
            if value is not UNSET:
                changes[name] = value
                fault = check(value)
                if fault is not None:
                    faults.append(Fault(name, fault))
        if faults:
            raise InvalidInput(faults, subject=type(self).__name__)
        self.changes = changes


@attrs.define(eq=False, kw_only=True, on_setattr=attrs.setters.NO_OP)
class RunPatch(_Patch):
    """
    A patch for the whole episode, from ``prepare_run``.

    Args:
        max_steps: Model steps the episode may take.
        stop_when: As the agent's field.
        tool_choice: As the agent's field: for the first step of the run, unless ``FirstStep`` says
            otherwise (O-21).
    """

    max_steps: int | Unset = UNSET
    stop_when: StopWhen[Any] | Unset = UNSET
    tool_choice: ToolChoice | FirstStep | Unset = UNSET


@attrs.define(eq=False, kw_only=True, on_setattr=attrs.setters.NO_OP)
class StepPatch(_Patch):
    """
    A patch for one step, from ``prepare_model_step``.

    Args:
        wrap_transport: Wraps the driver's HTTP transport in this step (O-24), inside of what the
            agent and hooks further left wrap around it.
        tool_choice: For this step alone, whichever it is.
    """

    wrap_transport: WrapTransport | Unset = UNSET

    tool_choice: ToolChoice | Unset = UNSET


_METADATA: Final = ("run_metadata", "thread_metadata", "message_metadata")


def _all(value: object, kind: type) -> bool:
    if isinstance(value, str) or not isinstance(value, Collection):
        return False
    return all(isinstance(item, kind) for item in value)


def _model(value: object) -> str | None:
    if isinstance(value, (str, ModelDriver)):
        return None
    return "expected a driver or a name; settings and options have fields of their own"


def _settings(value: object) -> str | None:
    return None if isinstance(value, ModelSettings) else "expected ModelSettings(...)"


def _options(value: object) -> str | None:
    if type(value) is dict or isinstance(value, Mapping):
        return None
    return "expected options by provider name"


def _instructions(value: object) -> str | None:
    if isinstance(value, (str, SystemMessage)) or _all(value, SystemMessage):
        return None
    return "expected text, a SystemMessage, or a list of SystemMessage objects"


def _messages(value: object) -> str | None:
    if _all(value, Message):
        return None
    return "expected a list of messages, such as some of run.messages"


def _names(value: object) -> str | None:
    return None if _all(value, str) else "expected a list of names"


def _metadata(value: object) -> str | None:
    if isinstance(value, MetadataPatch):
        return None
    return "expected MetadataPatch(private=..., public=...)"


def _option(name: str) -> Callable[[object], str | None]:
    """The check that the agent's field of this name has."""

    def check(value: object) -> str | None:
        found = option_faults(name, value, "")
        return "; ".join([str(fault).removeprefix(".") for fault in found]) or None

    return check


def _step_choice(value: object) -> str | None:
    if isinstance(value, FirstStep):
        return "is for one step: expected 'auto', 'none', 'required' or ToolName(name)"
    return _option("tool_choice")(value)


def _wrapper(value: object) -> str | None:
    return None if callable(value) else "expected a function from a transport to a transport"


def _output(value: object) -> str | None:
    found = [] if value is None else output_faults(value, "", classes=True)
    return "; ".join([str(fault) for fault in found]) or None


# What is wrong with the value of a field, as far as it can be told without the agent.
_Check = Callable[[object], "str | None"]
_FAULTS: Final[dict[str, _Check]] = {
    "model": _model,
    "model_settings": _settings,
    "provider_options": _options,
    "instructions": _instructions,
    "messages": _messages,
    "tools": _names,
    "provider_tools": _names,
    **dict.fromkeys(_METADATA, _metadata),
    **{name: _option(name) for name in ("max_steps", "prompt_cache", "stop_when", "tool_choice")},
    "wrap_transport": _wrapper,
    "output": _output,
}


def _fields(
    cls: type, **own: _Check
) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]], tuple[_Check, ...]]:
    names = tuple([field.name for field in attrs.fields(cls) if field.init])
    return names, attrgetter(*names), tuple([{**_FAULTS, **own}[name] for name in names])


_FIELDS: Final = {
    RunPatch: _fields(RunPatch),
    StepPatch: _fields(StepPatch, tool_choice=_step_choice),
}


def merged(left: RunPatch | None, right: RunPatch) -> RunPatch:
    """
    Both patches as one: what *right* sets wins, metadata patches are joined key by key.

    Hooks further right have seen what those further left decided (A-LIFE-2).
    """
    if left is None:
        return right
    changes = {**left.changes, **right.changes}
    for name in _METADATA:
        if name in left.changes and name in right.changes:
            before, after = left.changes[name], right.changes[name]
            changes[name] = MetadataPatch(
                private={**before.private, **after.private},
                public={**before.public, **after.public},
            )
    patch = object.__new__(RunPatch)  # both were checked when they were made
    for name in _FIELDS[RunPatch][0]:
        setattr(patch, name, changes.get(name, UNSET))
    patch.changes = changes
    return patch
