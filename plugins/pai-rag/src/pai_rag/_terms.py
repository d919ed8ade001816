"""The words of a query."""

from __future__ import annotations

import re

__all__ = ("terms_of",)

_MOST = 64
_LONGEST = 100
# Words that are in nearly every text: to find them says nothing. It is PostgreSQL's own list, so that
# both databases look for the same, and some words that questions are made of.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself"
        " she her hers herself it its itself they them their theirs themselves what which who whom"
        " this that these those am is are was were be been being have has had having do does did"
        " doing a an the and but if or because as until while of at by for with about against"
        " between into through during before after above below to from up down in out on off over"
        " under again further then once here there when where why how all any both each few more"
        " most other some such no nor not only own same so than too very s t can will just don"
        " should now could would may might must shall let please tell us",
    )
)
_WORD = re.compile(r"\w+")


def terms_of(query: str) -> tuple[str, ...]:
    """
    The distinct words of *query* that are worth looking for, at most 64.

    A term is made of letters, digits and underscores only, so that nothing of it can be taken for
    the syntax of a query; nothing else of the user's text reaches the database.
    """
    terms: dict[str, None] = {}
    for word in _WORD.findall(query.lower()):
        if word.strip("_") and word not in _COMMON and len(word) <= _LONGEST:
            terms[word] = None
            if len(terms) == _MOST:
                break
    return tuple(terms)
