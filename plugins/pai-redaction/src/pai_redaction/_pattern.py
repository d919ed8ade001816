r"""
A rule's pattern, as the two patterns RE2 is given: what matches, and what may still become a match.

Patterns are written in Python's syntax and matched by RE2, in linear time. RE2 has no partial
matching, so the beginnings of a pattern's matches are made a pattern of their own: that needs the
pattern's tree, which Python's parser gives. Classes such as ``\w``, and ``\b``, mean ASCII.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any, Final

import attrs

__all__ = ("Pattern", "read_pattern")

# Private by its name only: it has been there under two names for twenty years, and without it we
# would have to keep a parser of our own.
_parser: Any = importlib.import_module("re._parser")
_codes: Any = importlib.import_module("re._constants")

_MOST: Final = 1000
"""RE2 repeats nothing more often than this."""

_CLASSES: Final = {
    _codes.CATEGORY_DIGIT: r"\d",
    _codes.CATEGORY_NOT_DIGIT: r"\D",
    _codes.CATEGORY_SPACE: r"\s",
    _codes.CATEGORY_NOT_SPACE: r"\S",
    _codes.CATEGORY_WORD: r"\w",
    _codes.CATEGORY_NOT_WORD: r"\W",
}
_EDGES: Final = {_codes.AT_BOUNDARY: r"\b", _codes.AT_NON_BOUNDARY: r"\B"}
_FLAGS: Final = ((re.IGNORECASE, "i"), (re.DOTALL, "s"))
_REFUSED: Final = {
    _codes.AT: "^, $, \\A and \\Z: a rule is matched anywhere in a text; use \\b",
    _codes.ASSERT: "lookaround: matching would not be linear; use \\b, or a check",
    _codes.ASSERT_NOT: "lookaround: matching would not be linear; use \\b, or a check",
    _codes.GROUPREF: "a backreference: matching would not be linear",
    _codes.GROUPREF_EXISTS: "a backreference: matching would not be linear",
    _codes.ATOMIC_GROUP: "an atomic group: the longest match is always taken",
    _codes.POSSESSIVE_REPEAT: "a possessive repeat: the longest match is always taken",
}

Node = tuple[Any, Any]


@attrs.frozen
class Pattern:
    """
    What RE2 is given for a rule.

    Args:
        whole: Matches what the rule matches.
        begun: Matches what more text could make a match, whole matches included; never nothing.
        shortest: Characters of the shortest match.
        width: Characters of the longest match; ``None`` where there is no longest.
    """

    whole: str
    begun: str
    shortest: int
    width: int | None


def read_pattern(source: object) -> Pattern:
    """
    Read a pattern.

    Raises:
        ValueError: It is no pattern, or has what cannot be matched in linear time.
    """
    if not isinstance(source, str):
        raise ValueError("expected text")  # noqa: TRY004  # as for all that is no pattern
    try:
        tree = _parser.parse(source)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from error
    shortest, longest = tree.getwidth()
    if shortest == 0:
        raise ValueError("it matches the empty text")
    flags = _spelled(tree.state.flags)
    whole, begun = _sequence(tree), _begun_sequence(tree)
    assert begun is not None  # it matches something, and that has a beginning
    # The parser gives a repeat without an end a huge width.
    width = None if longest >= _parser.MAXREPEAT or longest > 1 << 30 else int(longest)
    return Pattern(f"(?{flags}:{whole})", f"(?{flags}:{begun})", int(shortest), width)


def _spelled(flags: int) -> str:
    return "".join([letter for flag, letter in _FLAGS if flags & flag])


# ---------------------------------------------------------------------- what matches


def _sequence(nodes: Sequence[Node]) -> str:
    return "".join([_whole(node) for node in nodes])


def _whole(node: Node) -> str:
    kind, value = node
    if kind is _codes.LITERAL:
        return _character(value)
    if kind is _codes.NOT_LITERAL:
        return f"[^{_character(value)}]"
    if kind is _codes.ANY:
        return "."
    if kind is _codes.IN:
        return _set(value)
    if kind is _codes.AT and value in _EDGES:
        return _EDGES[value]
    if kind is _codes.BRANCH:
        return f"(?:{'|'.join([_sequence(branch) for branch in value[1]])})"
    if kind is _codes.SUBPATTERN:
        return _group(value, _sequence(value[3]))
    if kind is _codes.MAX_REPEAT or kind is _codes.MIN_REPEAT:
        low, high, inner = value
        return f"(?:{_sequence(inner)}){_times(low, high)}"
    raise ValueError(f"it has {_REFUSED.get(kind, f'{str(kind).lower()}, which is not known')}")


def _character(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\x{{{code:X}}}"


def _set(items: Sequence[Node]) -> str:
    out = []
    for kind, value in items:
        if kind is _codes.NEGATE:
            out.append("^")
        elif kind is _codes.LITERAL:
            out.append(_character(value))
        elif kind is _codes.RANGE:
            out.append(f"{_character(value[0])}-{_character(value[1])}")
        else:
            out.append(_CLASSES[value])
    return f"[{''.join(out)}]"


def _group(value: Any, inner: str) -> str:
    _, on, off, _ = value
    switched_off = _spelled(off)
    return f"(?{_spelled(on)}{'-' if switched_off else ''}{switched_off}:{inner})"


def _times(low: int, high: int) -> str:
    if high is _parser.MAXREPEAT:
        high = -1
    if max(low, high) > _MOST:
        raise ValueError(f"it repeats more than {_MOST} times: leave out the upper limit")
    if high < 0:
        return "*" if low == 0 else "+" if low == 1 else f"{{{low},}}"
    return f"{{{low},{high}}}"


# ---------------------------------------------------------------------- what may become a match


def _begun_sequence(nodes: Sequence[Node]) -> str | None:
    r"""
    What begins a match of *nodes* one after another.

    That is a beginning of the first, or all of the first and a beginning of the rest; ``None`` if
    there is nothing but ``\b``.
    """
    begun: str | None = None
    for node in reversed(nodes):
        first, whole = _begun(node), _whole(node)
        if first is None:
            begun = None if begun is None else whole + begun
        elif begun is None:
            begun = first
        elif first == whole:
            begun = f"{whole}(?:{begun})?"
        else:
            begun = f"(?:{first}|{whole}{begun})"
    return begun


def _begun(node: Node) -> str | None:
    kind, value = node
    if kind is _codes.AT:
        return None
    if kind is _codes.BRANCH:
        branches = [_begun_sequence(branch) for branch in value[1]]
        return _any([branch for branch in branches if branch is not None])
    if kind is _codes.SUBPATTERN:
        inner = _begun_sequence(value[3])
        return None if inner is None else _group(value, inner)
    if kind is _codes.MAX_REPEAT or kind is _codes.MIN_REPEAT:
        return _begun_repeat(*value)
    return _whole(node)


def _any(branches: Sequence[str]) -> str | None:
    return f"(?:{'|'.join(branches)})" if branches else None


def _begun_repeat(low: int, high: int, nodes: Sequence[Node]) -> str | None:
    begun = _begun_sequence(nodes)
    if begun is None or high == 0:
        return None
    whole = _sequence(nodes)
    if begun == whole:
        # One character: some of it is a beginning of more of it.
        return f"(?:{whole}){'+' if high is _parser.MAXREPEAT else _times(1, high)}"
    before = _parser.MAXREPEAT if high is _parser.MAXREPEAT else high - 1
    return f"(?:(?:{whole}){_times(0, before)}{begun})"
