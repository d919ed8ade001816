"""Sums in plain words: what is to be worked out, and in which order."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

__all__ = ("Step", "Sum", "read_sum")

_NUMBER = r"\d+(?:\.\d+)?"
_SIGNED = rf"-?{_NUMBER}"
_WORDS = {
    "plus": "+",
    "minus": "-",
    "times": "*",
    "multiplied by": "*",
    "x": "*",
    "\u00d7": "*",
    "divided by": "/",
    "over": "/",
    "\u00f7": "/",
    "\u2212": "-",
}
_SIGN = (
    "[-+*/\u00d7\u00f7\u2212]"
    r"|\bplus\b|\bminus\b|\btimes\b|\bmultiplied by\b|\bdivided by\b|\bover\b|\bx\b"
)
_EXPRESSION = re.compile(
    rf"(?<![\w.])({_SIGNED})((?:\s*(?:{_SIGN})\s*{_SIGNED})+)(?!\.?\w)", re.IGNORECASE
)
_TERM = re.compile(rf"({_SIGN})\s*({_SIGNED})", re.IGNORECASE)

_ORDERS = (
    (re.compile(r"\b(?:add|sum(?: up)?(?: of)?|total of)\b(.*)", re.IGNORECASE), "+"),
    (re.compile(r"\b(?:multiply|product of)\b(.*)", re.IGNORECASE), "*"),
    (re.compile(r"\bsubtract\b(.*)\bfrom\b(.*)", re.IGNORECASE), "from"),
    (re.compile(r"\bdivide\b(.*)", re.IGNORECASE), "/"),
)
_LIST = re.compile(
    rf"[\s:(]*(?:the\s+)?(?:numbers?\s+)?({_SIGNED}(?:\s*(?:,|and|to|by|with|&)+\s*{_SIGNED})+)",
    re.IGNORECASE,
)


@attrs.frozen
class Step:
    """One operation on two numbers."""

    sign: str
    left: float
    right: float


@attrs.frozen
class Sum:
    """
    Numbers with signs between them.

    Args:
        numbers: At least two.
        signs: One fewer; of ``+ - * /``.
    """

    numbers: tuple[float, ...]
    signs: tuple[str, ...]

    @property
    def text(self) -> str:
        shown = [f"{number:g}" if number % 1 else str(int(number)) for number in self.numbers]
        rest = [f" {sign} {number}" for sign, number in zip(self.signs, shown[1:], strict=True)]
        return shown[0] + "".join(rest)

    def step(self, known: Sequence[float]) -> Step | None:
        """The next operation, when the first ones gave *known*; ``None`` when all are done."""
        numbers, signs = list(self.numbers), list(self.signs)
        for value in known:
            if not signs:
                return None
            at = _strongest(signs)
            numbers[at : at + 2] = [value]
            del signs[at]
        if not signs:
            return None
        at = _strongest(signs)
        return Step(signs[at], numbers[at], numbers[at + 1])

    def value(self) -> float | None:
        """The result; ``None`` where it is divided by 0."""
        known: list[float] = []
        while step := self.step(known):
            result = _apply(step)
            if result is None:
                return None
            known.append(result)
        return known[-1]


def _strongest(signs: list[str]) -> int:
    """Multiplication and division bind first, then from left to right."""
    return next((at for at, sign in enumerate(signs) if sign in "*/"), 0)


def _apply(step: Step) -> float | None:
    if step.sign == "+":
        return step.left + step.right
    if step.sign == "-":
        return step.left - step.right
    if step.sign == "*":
        return step.left * step.right
    return step.left / step.right if step.right else None


def _value(text: str) -> float:
    return float(text) if "." in text else int(text)


def read_sum(text: str) -> Sum | None:
    """The sum *text* asks for: ``2 + 3 * 4``, ``add 2 and 3``, ``subtract 2 from 5``."""
    if found := _EXPRESSION.search(text):
        terms = _TERM.findall(found[2])
        signs = tuple(_WORDS.get(sign.lower(), sign) for sign, _ in terms)
        return Sum((_value(found[1]), *(_value(number) for _, number in terms)), signs)
    for pattern, sign in _ORDERS:
        order = pattern.search(text)
        if order is None:
            continue
        if sign == "from":
            right, left = (re.search(_SIGNED, part) for part in order.groups())
            if left and right:
                return Sum((_value(left[0]), _value(right[0])), ("-",))
            continue
        if listed := _LIST.match(order[1]):
            numbers = tuple(_value(number) for number in re.findall(_SIGNED, listed[1]))
            return Sum(numbers, (sign,) * (len(numbers) - 1))
    return None
