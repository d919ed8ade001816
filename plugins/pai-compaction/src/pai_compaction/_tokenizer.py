"""Counting the tokens of a text: :class:`Tokenizer`."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Protocol

from pai import DefinitionError, Fault

__all__ = ("Count", "Tokenizer", "estimate")

Count = Callable[[str], int]
"""Counts the tokens of a text."""

# English prose has above four bytes a token, JSON and code about three, and so have the scripts of
# East Asia, with three bytes a character. Where it errs, it should say too much.
_BYTES: Final = 3.5

_SLICE: Final = 100_000
"""Characters given to the encoder at once: it refuses a million."""

ENCODINGS: Final = ("o200k_base", "cl100k_base")


class _Encoder(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...


def estimate(text: str) -> int:
    """A guess, from the length in bytes; what a provider reports corrects it."""
    return int(len(text.encode("utf-8", "surrogatepass")) / _BYTES) + 1 if text else 0


class Tokenizer:
    """
    What counts.

    Args:
        choice: ``None`` for the estimate, the name of an encoding for exact counts, or a function.

    Attributes:
        heavy: It takes its time: much is not counted on the event loop.

    Raises:
        DefinitionError: There is no such encoding, or the extra is not installed.
    """

    __slots__ = ("_count", "_encoding", "heavy")

    def __init__(self, choice: str | Count | None = None) -> None:
        self._encoding: str | None = None
        self._count: Count | None = estimate
        if isinstance(choice, str):
            if choice not in ENCODINGS:
                raise _fault(f"there is no encoding {choice!r}; there are {', '.join(ENCODINGS)}")
            if find_spec("bpe_openai") is None:
                raise _fault("exact counts need an extra: pip install 'pai-compaction[tokens]'")
            self._encoding, self._count = choice, None
        elif choice is not None:
            if not callable(choice):
                raise _fault("expected None, the name of an encoding, or a function of a text")
            self._count = choice
        self.heavy: Final = self._encoding is not None

    @property
    def loaded(self) -> bool:
        """It can count at once."""
        return self._count is not None

    def load(self) -> Count:
        """Get ready to count: that takes a second, in any thread."""
        if self._count is None:
            self._count = _loaded(str(self._encoding))
        return self._count

    def __call__(self, text: str) -> int:
        """The tokens of *text*."""
        count = self._count or self.load()
        return count(text)


def _loaded(encoding: str) -> Count:
    encoder: _Encoder = import_module("bpe_openai").get_encoding(encoding)

    def count(text: str) -> int:
        if len(text) <= _SLICE:
            return len(encoder.encode_ordinary(text))
        starts = range(0, len(text), _SLICE)
        return sum([len(encoder.encode_ordinary(text[at : at + _SLICE])) for at in starts])

    return count


def _fault(message: str) -> DefinitionError:
    return DefinitionError([Fault("tokenizer", message)], subject="compaction")
