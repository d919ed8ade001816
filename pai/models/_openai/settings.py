"""The part of a request that is neither messages nor tools, for either API."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence

from pai.models._openai.endpoint import PROVIDER, Endpoint
from pai.models._profiles import clamp, reasons, version
from pai.ports import ModelRequest
from pai.protocol import (
    ModelSettings,
    PromptCache,
    ProviderTool,
    Reasoning,
    ReasoningLevel,
    ToolName,
)
from pai.schema import JsonObject, JsonValue

__all__ = ("chat_settings", "merge_options", "responses_settings")

log = logging.getLogger("pai.request")

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_KEY = 64


def _present(**values: JsonValue) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}


def _left_out(**values: object) -> None:
    names = [name for name, value in values.items() if value is not None]
    if names:
        log.debug("settings the provider has no field for: %s", ", ".join(names))


def _reasoning(wish: ReasoningLevel | Reasoning | None) -> Reasoning | None:
    return Reasoning(wish) if isinstance(wish, str) else wish


def chat_settings(
    request: ModelRequest, endpoint: Endpoint, model: str, levels: Sequence[ReasoningLevel]
) -> JsonObject:
    """Settings, tool choice, output and prompt cache for the chat completions API."""
    settings = request.settings
    body = _sampling(settings)
    if endpoint.own:
        _left_out(top_k=settings.top_k)
        body |= _present(max_completion_tokens=settings.max_output_tokens)
        body |= _cache(request.prompt_cache, model)
    else:
        body |= _present(max_tokens=settings.max_output_tokens, top_k=settings.top_k)
    reasoning = _reasoning(settings.reasoning)
    if reasoning is not None and reasons(levels):
        _left_out(budget_tokens=reasoning.budget_tokens)
        body["reasoning_effort"] = clamp(reasoning.level, levels)
    if request.tools or own_tools(request.provider_tools):
        choice = request.tool_choice
        if isinstance(choice, ToolName):
            body["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
        elif choice is not None:
            body["tool_choice"] = choice
    if request.output is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": _format(request.output)}
    return body


def _sampling(settings: ModelSettings) -> JsonObject:
    stop = settings.stop_sequences
    return _present(
        temperature=settings.temperature,
        top_p=settings.top_p,
        presence_penalty=settings.presence_penalty,
        frequency_penalty=settings.frequency_penalty,
        stop=None if not stop else list(stop),
        seed=settings.seed,
    )


def responses_settings(
    request: ModelRequest, endpoint: Endpoint, model: str, levels: Sequence[ReasoningLevel]
) -> JsonObject:
    """Settings, tool choice, output and prompt cache for the Responses API."""
    settings = request.settings
    body = _present(
        max_output_tokens=settings.max_output_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
    )
    _left_out(
        top_k=settings.top_k,
        presence_penalty=settings.presence_penalty,
        frequency_penalty=settings.frequency_penalty,
        stop_sequences=settings.stop_sequences,
        seed=settings.seed,
    )
    if endpoint.own:
        body |= _cache(request.prompt_cache, model)
    reasoning = _reasoning(settings.reasoning)
    if reasoning is not None and reasons(levels):
        _left_out(budget_tokens=reasoning.budget_tokens)
        level = clamp(reasoning.level, levels)
        shown: JsonObject = {"summary": "auto"} if reasoning.summary and level != "none" else {}
        body["reasoning"] = {"effort": level, **shown}
    hosted = own_tools(request.provider_tools)
    if request.tools or hosted:
        choice = request.tool_choice
        if isinstance(choice, ToolName):
            own = any(tool.name == choice.name for tool in hosted)
            body["tool_choice"] = (
                {"type": choice.name} if own else {"type": "function", "name": choice.name}
            )
        elif choice is not None:
            body["tool_choice"] = choice
    if request.output is not None:
        body["text"] = {"format": {"type": "json_schema", **_format(request.output)}}
    return body


def own_tools(tools: Sequence[ProviderTool]) -> list[ProviderTool]:
    """Those of our provider (A-TOOL-7)."""
    return [tool for tool in tools if tool.provider == PROVIDER]


_formats: dict[int, tuple[JsonObject, JsonObject]] = {}
_MOST_FORMATS = 64


def _format(schema: JsonObject) -> JsonObject:
    """The schema of an answer under a name, in strict form where it has one; made once."""
    known = _formats.get(id(schema))
    if known is None or known[0] is not schema:
        if len(_formats) >= _MOST_FORMATS:
            _formats.clear()
        # The schema stays alive with it, so that nothing else gets its id.
        known = _formats[id(schema)] = (schema, _made_format(schema))
    return known[1]


def _made_format(schema: JsonObject) -> JsonObject:
    from pai.schema import strict_form

    title = schema.get("title")
    name = _NOT_A_NAME.sub("_", title).strip("_")[:64] if isinstance(title, str) else ""
    strict = strict_form(schema)
    return {
        "name": name or "answer",
        "schema": schema if strict is None else strict,
        "strict": strict is not None,
    }


def _cache(wish: PromptCache | None, model: str) -> JsonObject:
    """
    The wish for a prompt cache in OpenAI's fields.

    Only models from gpt-4.1 on take a retention, and from gpt-5.5 on none but 24 hours: there the
    short one is the service's default.
    """
    if wish is None or wish.retention == "none":
        return {}
    known = version(model)
    retention: str | None = None
    if known is not None and known >= (4, 1):
        retention = "24h" if wish.retention == "long" else "in_memory" if known < (5, 5) else None
    key = wish.key[:_LONGEST_KEY] if wish.key else None
    return _present(prompt_cache_key=key, prompt_cache_retention=retention)


def merge_options(body: JsonObject, options: Mapping[str, JsonValue] | None) -> JsonObject:
    """
    The body with the caller's options for this provider, which win.

    Objects are merged one level deep, so that ``text={"verbosity": "low"}`` keeps the format.
    """
    for name, value in (options or {}).items():
        ours = body.get(name)
        if isinstance(ours, dict) and isinstance(value, Mapping):
            body[name] = {**ours, **value}
        else:
            body[name] = value
    return body
