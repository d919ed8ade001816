"""Answers from what was retrieved: the sentences that have most words in common with the question."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pai.ports import ModelRequest
from pai.protocol import DataPart, Message, SourcePart, TextPart
from pai.schema import JsonValue

__all__ = ("quote_context",)

_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a about all an and any are as at be been but by can could did do does for from had has have"
        " how i in into is it its me my no not of on or our out so than that the their them then"
        " there these they this to up us was we were what when where which who why will with would"
        " you your",
    )
)
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\s|$)|\.(?=\S)[^.!?\n]*)*[.!?]*")
_MOST = 2
# What a retriever gives: a number to cite it by, a heading, and the text, perhaps between tags.
_NUMBERED = re.compile(r"(\[\d+\]) [^\n]*\n(.*)", re.DOTALL)
_TAG = re.compile(r"^</?\w+>$", re.MULTILINE)


def _words(text: str) -> set[str]:
    words = re.findall(r"\w+", text.lower())
    return {word.removesuffix("s") for word in words if word not in _COMMON}


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)


def _context(request: ModelRequest) -> Iterator[tuple[str, str]]:
    """
    What was added to the conversation: later instructions, and parts that carry sources.

    Yields texts, and what each is to be cited by: ``"[1]"``, or nothing.
    """
    for system in request.instructions[1:]:
        yield system.content, ""
    for message in request.messages:
        texts = list(_carried(message))
        numbered = [found for text in texts if (found := _NUMBERED.fullmatch(text))]
        if numbered:
            # What stands beside them is about them.
            yield from [(_TAG.sub("", found[2]), found[1]) for found in numbered]
        else:
            yield from [(text, "") for text in texts]


def _carried(message: Message) -> Iterator[str]:
    if message.role != "user":
        return
    sourced = any(isinstance(part, SourcePart) for part in message.parts)
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    if sourced:
        # The question itself comes first, what was found for it after.
        yield from texts[1:]
    for part in message.parts:
        if isinstance(part, DataPart):
            yield from _strings(part.value)


def quote_context(request: ModelRequest, question: str) -> str | None:
    """An answer in the words of what was retrieved; ``None`` where nothing fits the question."""
    wanted = _words(question)
    found: list[tuple[int, int, str, str]] = []
    for text, mark in _context(request):
        for sentence in _SENTENCE.findall(text):
            shared = len(wanted & _words(sentence))
            if shared:
                found.append((-shared, len(found), sentence.strip(), mark))
    best = sorted(found)[:_MOST]
    if not best:
        return None
    # A second sentence must fit half as well as the first.
    kept = [each for each in best if 2 * each[0] <= best[0][0]]
    kept.sort(key=lambda each: each[1])
    quoted = " ".join(sentence for _, _, sentence, _ in kept)
    marks = "".join(dict.fromkeys(mark for _, _, _, mark in kept))
    return f'From what I was given: "{quoted}"' + (f" {marks}" if marks else "")
