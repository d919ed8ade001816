"""The plugin: its hooks, its options, and :func:`redaction`, which makes it."""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import attrs

from pai import (
    AsideItem,
    DefinitionError,
    Fault,
    Message,
    ReplaceInput,
    ReplaceValue,
    StreamPart,
    ToolCallContext,
    ToolOutput,
    ToolResultContext,
    hookimpl,
)
from pai_redaction._hider import Hider
from pai_redaction._marks import MODES, Marks, Mode
from pai_redaction._packs import packs as all_packs
from pai_redaction._parts import hide_part
from pai_redaction._rule import Rule
from pai_redaction._step import hidden_stream

__all__ = ("Options", "OwnRule", "Redaction", "position", "redaction", "register_lifecycle")

position: Final = "last"
"""Right of the agent's own plugins: what they write is looked at as well."""

_INPUTS: Final = "inputs"


class Redaction:
    """
    Hides what rules find in whatever a run writes; made by :func:`redaction`.

    Within one composition it stands last, wherever it is named.
    """

    name = "redaction"
    position = position

    def __init__(self, rules: tuple[Rule, ...], marks: Marks, *, tool_inputs: bool) -> None:
        self._hider: Final = Hider(rules, marks)
        self._tool_inputs: Final = tool_inputs

    def redact(self, text: str) -> str:
        """A text as this plugin would write it."""
        return self._hider.text(text)

    @hookimpl(trylast=True)
    def accept_message(self, message: Message) -> Message | None:
        """Hide in the user's message, before it is written."""
        parts = tuple([hide_part(self._hider, part) for part in message.parts])
        if all(new is old for new, old in zip(parts, message.parts, strict=True)):
            return None
        return attrs.evolve(message, parts=parts)

    @hookimpl(trylast=True)
    def transform_step_stream(
        self, stream: AsyncIterator[StreamPart], state: dict[str, object]
    ) -> AsyncIterator[StreamPart]:
        """Hide in what the model says, or whatever speaks in its place."""
        inputs: list[Any] = []
        state[_INPUTS] = inputs
        return hidden_stream(self._hider, stream, inputs if self._tool_inputs else None)

    @hookimpl(trylast=True)
    def rewrite_tool_input(
        self, call: ToolCallContext[Any], state: dict[str, object]
    ) -> ReplaceInput | None:
        """Hide in an input that another plugin made: what the model wrote has been looked at."""
        known = state.get(_INPUTS)
        if not self._tool_inputs or (
            isinstance(known, list) and any(each is call.raw_input for each in known)
        ):
            return None
        hidden = self._hider.value(call.raw_input)
        return None if hidden is call.raw_input else ReplaceInput(hidden)

    @hookimpl(trylast=True)
    def after_tool_result(self, result: ToolResultContext[Any]) -> ToolOutput | None:
        """Hide in the output of a call; its error is an aside."""
        if result.error is not None:
            return None
        output = self._hider.value(result.output)
        return None if output is result.output else ToolOutput(output)

    @hookimpl(trylast=True)
    def transform_aside(self, item: AsideItem) -> ReplaceValue | None:
        """Hide in data, progress, error texts, and whatever else stands beside the stream."""
        value = self._hider.value(item.value)
        return None if value is item.value else ReplaceValue(value)


def redaction(
    packs: Iterable[str] | None = None,
    rules: Iterable[Rule] = (),
    mode: Mode = "mask",
    *,
    key: str | None = None,
    tool_inputs: bool = True,
) -> Redaction:
    """
    Make a plugin that hides secrets and personal data before they are written or shown.

    Args:
        packs: Names of rule packs; ``None``: all of them.
        rules: Rules of one's own; they name what they find before the packs do.
        mode: What stands in the place of what is hidden: ``"mask"`` its rule's name, ``[email]``;
            ``"hash"`` that and a keyed hash, ``[email:3f9c2a71b0de]``, so that the same thing is
            known again; ``"remove"`` nothing.
        key: What hashes are keyed with. ``None``: a random key, with which two plugin objects or
            processes hash alike nothing.
        tool_inputs: Hide in the inputs of tools as well. The tool gets what is stored: one that
            needs the real value needs ``False``, and then it is stored and shown.

    Raises:
        DefinitionError: All mistakes at once.
    """
    faults: list[Fault] = []
    own = tuple(rules)
    faults += [
        Fault(f"rules[{index}]", "expected a Rule")
        for index, rule in enumerate(own)
        if not _is(rule, Rule)
    ]
    known = all_packs()
    if isinstance(packs, str):
        faults.append(Fault("packs", f"expected a list of names: [{packs!r}]"))
        packs = ()
    chosen = tuple(known) if packs is None else tuple(packs)
    faults += [_unknown_pack(name, tuple(known)) for name in chosen if name not in known]
    if mode not in MODES:
        faults.append(Fault("mode", f"expected one of {', '.join(map(repr, MODES))}"))
    if key is not None and not (_is(key, str) and key):
        faults.append(Fault("key", "expected text, or None for a random key"))
    if faults:
        raise DefinitionError(faults, subject="redaction")
    # In the packs' own order, which is that of their names' precedence.
    of_packs = [rule for name, found in known.items() if name in chosen for rule in found]
    return Redaction((*own, *of_packs), Marks(mode, key), tool_inputs=tool_inputs)


def _is(value: object, cls: type) -> bool:
    return isinstance(value, cls)


def _unknown_pack(name: object, known: tuple[str, ...]) -> Fault:
    near = difflib.get_close_matches(str(name), known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return Fault("packs", f"there is no pack {name!r}{hint} There are {', '.join(known)}")


@attrs.frozen
class OwnRule:
    """
    A rule as a configuration file has it; see :class:`Rule`.

    Args:
        name: What the mark says.
        pattern: A regular expression.
        max_length: Characters of the longest match.
    """

    name: str
    pattern: str
    max_length: int


@attrs.frozen
class Options:
    """
    What a configuration file may say; see :func:`redaction`.

    Args:
        packs: Names of rule packs; without it, all of them.
        rules: Rules of one's own.
        mode: How things are hidden.
        key: What hashes are keyed with.
        tool_inputs: Hide in the inputs of tools as well.
    """

    packs: list[str] | None = None
    rules: list[OwnRule] = attrs.field(factory=list)
    mode: Mode = "mask"
    key: str | None = None
    tool_inputs: bool = True


@hookimpl
def register_lifecycle(options: object) -> Redaction:
    """Give the plugin that the options describe."""
    chosen = options if isinstance(options, Options) else Options()
    return redaction(
        chosen.packs,
        [Rule(rule.name, rule.pattern, rule.max_length) for rule in chosen.rules],
        chosen.mode,
        key=chosen.key,
        tool_inputs=chosen.tool_inputs,
    )
