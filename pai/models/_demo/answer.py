"""What the demo answers: the first rule that fits."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from pai.models._demo.quoting import quote_context
from pai.models._demo.sums import read_sum
from pai.models._demo.tools import Call, fill, named_calls, tool_for
from pai.ports import ModelRequest
from pai.protocol import Message, SourcePart, TextPart, ToolCallPart, ToolName, ToolSpec
from pai.schema import JsonValue, dump_json

__all__ = ("Answer", "Call", "find_answer")

_BEFORE = re.compile(
    r"\bwhat\b.*\b(?:did|have|had) (?:i|we)\b.*\b(?:ask|asked|say|said|tell|told|talk|write|written)\b"
    r"|\bmy (?:\w+ )?(?:last|first|previous|earlier) (?:question|message)"
    r"|\b(?:last|first|previous|earlier) (?:question|message|thing) (?:i|of mine)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(r"\bfirst\b", re.IGNORECASE)
_LAST = re.compile(r"\b(?:last|previous)\b", re.IGNORECASE)

_VERBS = {"+": "add that up", "-": "subtract that", "*": "multiply that", "/": "divide that"}


@attrs.frozen
class Answer:
    """Text, then calls; either may be empty."""

    text: str = ""
    calls: tuple[Call, ...] = ()


def find_answer(request: ModelRequest) -> Answer:
    """The demo's answer to the last user's message of *request*."""
    asked, question, done = _turn(request.messages)
    if request.output is not None:
        return Answer(dump_json(fill(request.output, question)))
    tools = () if request.tool_choice == "none" else request.tools
    if answer := _sum(question, tools, done):
        return answer
    if done:
        return Answer(" ".join(_told(call) for call in done))
    if answer := _chosen(request, question):
        return answer
    if _BEFORE.search(question):
        return Answer(_remembered(question, asked))
    calls, missing = named_calls(question, tools)
    if calls:
        return Answer(f"Let me ask {' and '.join(call.tool for call in calls)}.", tuple(calls))
    if missing:
        return Answer(missing)
    if quoted := quote_context(request, question):
        return Answer(quoted)
    return Answer(_introduction(tools))


def _turn(messages: Sequence[Message]) -> tuple[list[str], str, list[ToolCallPart]]:
    """What was asked before, what is asked now, and the calls made since."""
    asked = [_said(message) for message in messages if message.role == "user"]
    done: list[ToolCallPart] = []
    for message in reversed(messages):
        if message.role == "user":
            break
        done[:0] = [part for part in message.parts if isinstance(part, ToolCallPart)]
    return asked[:-1], asked[-1] if asked else "", done


def _said(message: Message) -> str:
    """The user's own words; what was retrieved for them comes after, with its sources."""
    if not any(isinstance(part, SourcePart) for part in message.parts):
        return message.text
    return next((part.text for part in message.parts if isinstance(part, TextPart)), "")


def _sum(question: str, tools: Sequence[ToolSpec], done: list[ToolCallPart]) -> Answer | None:
    """A sum: a call for each of its operations, one a step, then the result."""
    found = read_sum(question)
    if found is None:
        return None
    makers = {sign: maker for sign in found.signs if (maker := tool_for(sign, tools))}
    if len(makers) < len(set(found.signs)):
        if done:
            return None
        return Answer(f"{found.text} = {_shown(found.value())} (worked out without a tool)")
    known = [value for call in done if (value := _number(call)) is not None]
    if len(known) < len(done):
        return None
    step = found.step(known)
    if step is None:
        return Answer(f"{found.text} = {_shown(known[-1])}")
    tool = makers[step.sign]
    text = "" if done else f"Let me {_VERBS[step.sign]}."
    return Answer(text, (Call(tool.name, tool.pair(step.left, step.right)),))


def _number(call: ToolCallPart) -> float | None:
    """The number a call gave, also as text or as an object's only value."""
    value = call.output if call.outcome in {"completed", "skipped"} else None
    if isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _shown(value: float | None) -> str:
    if value is None:
        return "undefined"
    return str(int(value)) if float(value).is_integer() else f"{value:g}"


def _told(call: ToolCallPart) -> str:
    if call.outcome in {"completed", "skipped"}:
        return f"{call.tool} says: {_plain(call.output)}"
    return f"{call.tool} gave no result: {call.error or call.outcome or 'it was interrupted'}"


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else dump_json(value)


def _chosen(request: ModelRequest, question: str) -> Answer | None:
    """A call that the request demands."""
    choice = request.tool_choice
    if isinstance(choice, ToolName):
        tools = [tool for tool in request.tools if tool.name == choice.name]
    else:
        tools = list(request.tools) if choice == "required" else []
    if not tools:
        return None
    calls, _ = named_calls(question, tools)
    if not calls:
        value = fill(tools[0].input_schema, question)
        calls = [Call(tools[0].name, value if isinstance(value, dict) else {})]
    return Answer("", tuple(calls))


def _remembered(question: str, asked: list[str]) -> str:
    if not asked:
        return "Nothing: this is your first message in this conversation."
    if _FIRST.search(question):
        return f'Your first message was: "{asked[0]}"'
    if _LAST.search(question) or len(asked) == 1:
        return f'You asked before: "{asked[-1]}"'
    return "You asked before: " + ", then ".join(f'"{text}"' for text in asked)


def _introduction(tools: Sequence[ToolSpec]) -> str:
    names = ", ".join(tool.name for tool in tools)
    can = f"call a tool that you name ({names})" if names else "call tools, but was given none"
    return (
        "I am the offline demo model, a handful of rules and no language model."
        f" I can {can}, work out a sum such as 2 + 3, tell you what you asked before,"
        ' and quote what was retrieved. For real answers use a model such as "openai:gpt-5.2".'
    )
