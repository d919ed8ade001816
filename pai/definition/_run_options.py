"""Options of one call: JSON, so that whoever works on the run has them (run options)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast

import attrs

from pai.definition._checks import provider_options_faults, text_faults
from pai.definition._loop_options import LazyTools, as_prompt_cache, option_faults
from pai.definition._outputs import output_faults
from pai.definition._selection import model_name_faults, settings_faults
from pai.definition._stop import StopStrategy, stop_faults, stop_from_json
from pai.errors import Fault, InvalidInput, UnknownOptionError
from pai.protocol import (
    FirstStep,
    ModelSettings,
    PromptCache,
    ProviderOptions,
    Retry,
    ToolChoice,
    ToolName,
)
from pai.schema import UNSET, JsonObject, JsonValue, check_json, compile_schema

__all__ = ("RunOptions", "run_options")


@attrs.frozen(kw_only=True, init=False)
class RunOptions:
    """
    Options of one run: they win over the agent's fields, and hooks win over them.

    They are stored with the run, so that another worker has them, too; so there is no function and
    no object of the application among them. ``None`` leaves a field to the agent.

    Args:
        model: A model's name; the agent's resolver is not asked then.
        model_settings: Replaces the settings whole.
        provider_options: Replaces the options whole.
        max_steps: Model steps an episode may take.
        stop_when: ``step_limit()``, ``until_finish_reason()``, ``budget()``, joined by ``|`` and ``&``.
        tool_choice: As the agent's field.
        tool_execution: ``"parallel"`` or ``"sequential"``.
        max_parallel_tools: Calls that may run at once.
        retry: How often a failed model call is made again; ``Retry(max_retries=0)``: not at all.
        prompt_cache: A wish for the provider's prompt cache.
        repair_tool_input: Whether inputs that do not fit are converted.
        lazy_tools: How lazy tools are told of.
        output: The structured output that is asked for: the name of one of the agent's ``outputs``,
            or a JSON Schema (O-11).
        state: The application's own; ``None`` is a value (O-19).
        parent_run_id: The run that this one belongs to.

    Raises:
        UnknownOptionError: An option nobody knows.
        InvalidInput: All that is wrong, at once.
    """

    model: str | None
    model_settings: ModelSettings | None
    provider_options: ProviderOptions | None
    max_steps: int | None
    stop_when: StopStrategy | None
    tool_choice: ToolChoice | FirstStep | None
    tool_execution: Literal["parallel", "sequential"] | None
    max_parallel_tools: int | None
    retry: Retry | None
    prompt_cache: PromptCache | None
    repair_tool_input: bool | None
    lazy_tools: LazyTools | None
    output: str | Mapping[str, object] | None
    state: object
    parent_run_id: str | None

    def __init__(
        self,
        *,
        model: str | None = None,
        model_settings: ModelSettings | None = None,
        provider_options: ProviderOptions | None = None,
        max_steps: int | None = None,
        stop_when: StopStrategy | None = None,
        tool_choice: ToolChoice | FirstStep | None = None,
        tool_execution: Literal["parallel", "sequential"] | None = None,
        max_parallel_tools: int | None = None,
        retry: Retry | None = None,
        prompt_cache: PromptCache | Literal["none", "short", "long"] | None = None,
        repair_tool_input: bool | None = None,
        lazy_tools: LazyTools | None = None,
        output: str | Mapping[str, object] | None = None,
        state: object = UNSET,
        parent_run_id: str | None = None,
        **unknown: object,
    ) -> None:
        _refuse(unknown, "")
        self.__attrs_init__(
            model=model,
            model_settings=model_settings,
            provider_options=provider_options,
            max_steps=max_steps,
            stop_when=stop_when,
            tool_choice=tool_choice,
            tool_execution=tool_execution,
            max_parallel_tools=max_parallel_tools,
            retry=retry,
            prompt_cache=as_prompt_cache(prompt_cache),
            repair_tool_input=repair_tool_input,
            lazy_tools=lazy_tools,
            output=output,
            state=state,
            parent_run_id=parent_run_id,
        )
        faults: list[Fault] = []
        for name, value in _given(self):
            faults += _FAULTS[name](value, name)
        if faults:
            raise InvalidInput(faults, subject="RunOptions")

    def to_json(self) -> JsonObject:
        """What is set, as JSON: the form in which it is stored, and which a mapping may have."""
        return {name: _TO_JSON.get(name, _as_it_is)(value) for name, value in _given(self)}


def _given(options: RunOptions) -> list[tuple[str, Any]]:
    """The options that say something."""
    found = [(name, getattr(options, name)) for name in _FAULTS]
    return [
        (name, value)
        for name, value in found
        if (value is not None if name != "state" else value is not UNSET)
    ]


def run_options(given: object, at: str = "options") -> RunOptions:
    """
    The options that were given with a call, or stored with a run.

    Args:
        given: :class:`RunOptions`, or a mapping of their JSON form.
        at: What goes before the paths of faults.

    Raises:
        UnknownOptionError: An option nobody knows.
        InvalidInput: All that is wrong, at once.
    """
    if isinstance(given, RunOptions):
        return given
    if not isinstance(given, Mapping):
        fault = Fault(at, f"expected RunOptions(...), got {type(given).__name__}")
        raise InvalidInput([fault], subject=at)
    fields = dict(given)
    _refuse({name: value for name, value in fields.items() if name not in _FAULTS}, f"{at}.")
    faults = check_json(fields, at=at, max_depth=_DEPTH)
    if faults:
        raise InvalidInput(faults, subject=at)
    found: list[Fault] = []
    made: dict[str, Any] = {}
    for name, value in fields.items():
        if value is None and name != "state":
            continue
        before = len(found)
        read = _FROM_JSON.get(name)
        made[name] = value if read is None else read(value, f"{at}.{name}", found)
        if len(found) > before:
            del made[name]
    try:
        options = RunOptions(**made)
    except InvalidInput as error:
        found += [fault.under(at) for fault in error.faults]
    if found:
        raise InvalidInput(found, subject=at)
    return options


_DEPTH: Final = 32


def _refuse(unknown: Mapping[Any, object], prefix: str) -> None:
    faults = [Fault(f"{prefix}{name}", "is no option of a run") for name in unknown]
    if faults:
        raise UnknownOptionError(faults, subject="RunOptions")


# ---------------------------------------------------------------------------- what is wrong


def _json(value: object, at: str) -> list[Fault]:
    return list(check_json(value, at=at, max_depth=_DEPTH))


def _parent(value: object, at: str) -> list[Fault]:
    faults = text_faults(value, at, "expected the id of a run")
    if not faults and len(cast("str", value)) > 128:
        return [Fault(at, "expected 1 to 128 characters")]
    return faults


def _model(value: object, at: str) -> list[Fault]:
    if isinstance(value, str):
        return model_name_faults(value, at)
    return [Fault(at, "expected a name such as 'openai:gpt-5.2': drivers belong to the agent")]


def _repair(value: object, at: str) -> list[Fault]:
    if isinstance(value, bool):
        return []
    return [Fault(at, "expected True or False: a function belongs into define_agent()")]


def _stop(value: object, at: str) -> list[Fault]:
    return stop_faults(value, at, json=True)


def _options(value: object, at: str) -> list[Fault]:
    return provider_options_faults(value, at)


def _output(value: object, at: str) -> list[Fault]:
    return output_faults(value, at, classes=False)


def _shared(name: str) -> Callable[[object, str], list[Fault]]:
    return lambda value, at: option_faults(name, value, at)


_FAULTS: Final[dict[str, Callable[[object, str], list[Fault]]]] = {
    "model": _model,
    "model_settings": settings_faults,
    "provider_options": _options,
    "max_steps": _shared("max_steps"),
    "stop_when": _stop,
    "tool_choice": _shared("tool_choice"),
    "tool_execution": _shared("tool_execution"),
    "max_parallel_tools": _shared("max_parallel_tools"),
    "retry": _shared("retry"),
    "prompt_cache": _shared("prompt_cache"),
    "repair_tool_input": _repair,
    "lazy_tools": _shared("lazy_tools"),
    "output": _output,
    "state": _json,
    "parent_run_id": _parent,
}


# ---------------------------------------------------------------------------- to and from JSON


def _as_it_is(value: Any) -> JsonValue:
    return value  # type: ignore[no-any-return]  # it is JSON already


def _fields(value: Any) -> JsonValue:
    return attrs.asdict(value, filter=lambda _, item: item is not None)


def _choice_to_json(choice: Any) -> JsonValue:
    if isinstance(choice, FirstStep):
        first: JsonObject = {"first": _choice_to_json(choice.choice)}
        return first if choice.then is None else first | {"then": _choice_to_json(choice.then)}
    return {"tool": choice.name} if isinstance(choice, ToolName) else cast("str", choice)


def _choice_from_json(value: object, at: str, faults: list[Fault]) -> object:
    if not isinstance(value, Mapping):
        return value
    if set(value) == {"tool"}:
        return ToolName(value["tool"])
    if "first" in value and set(value) <= {"first", "then"}:
        then = value.get("then")
        return FirstStep(
            cast("Any", _choice_from_json(value["first"], at, faults)),
            cast("Any", None if then is None else _choice_from_json(then, at, faults)),
        )
    faults.append(Fault(at, "expected a choice, {'tool': name} or {'first': choice}"))
    return None


def _settings_to_json(value: Any) -> JsonValue:
    given = cast("JsonObject", compile_schema(ModelSettings).dump(value))
    return {name: item for name, item in given.items() if item is not None}


def _parsed(cls: type) -> Callable[[object, str, list[Fault]], object]:
    def parse(value: object, at: str, faults: list[Fault]) -> object:
        try:
            return compile_schema(cls).parse(value, at=at)
        except InvalidInput as error:
            faults += error.faults
            return None

    return parse


def _cache_from_json(value: object, at: str, faults: list[Fault]) -> object:
    return value if isinstance(value, str) else _parsed(PromptCache)(value, at, faults)


_TO_JSON: Final[dict[str, Callable[[Any], JsonValue]]] = {
    "output": lambda value: value if isinstance(value, str) else dict(value),
    "model_settings": _settings_to_json,
    "provider_options": lambda value: {name: dict(own) for name, own in value.items()},
    "stop_when": lambda value: value.to_json(),
    "tool_choice": _choice_to_json,
    "retry": _fields,
    "prompt_cache": _fields,
    "lazy_tools": _fields,
}

_FROM_JSON: Final[dict[str, Callable[[object, str, list[Fault]], object]]] = {
    "model_settings": _parsed(ModelSettings),
    "stop_when": stop_from_json,
    "tool_choice": _choice_from_json,
    "retry": _parsed(Retry),
    "prompt_cache": _cache_from_json,
    "lazy_tools": _parsed(LazyTools),
}
