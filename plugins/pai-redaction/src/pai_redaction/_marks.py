"""What stands in the place of what is hidden."""

from __future__ import annotations

import hmac
import secrets
from typing import Final, Literal, get_args

__all__ = ("MODES", "Mark", "Marks", "Mode")

Mode = Literal["mask", "hash", "remove"]
"""How something is hidden: by its rule's name, by that and a keyed hash, or without a trace."""

MODES: Final[tuple[str, ...]] = get_args(Mode)

_DIGITS: Final = 12
"""Hexadecimal digits of a hash: enough to tell things apart, too few to be the thing."""


class Mark:
    """A mark for something that may come piece by piece."""

    __slots__ = ("_hash", "_name")

    def __init__(self, name: str, hash_: hmac.HMAC | None) -> None:
        self._name = name
        self._hash = hash_

    def add(self, data: bytes) -> None:
        """Take in more of what is hidden."""
        if self._hash is not None:
            self._hash.update(data)

    def made(self) -> bytes:
        """The mark as UTF-8."""
        if self._hash is None:
            return self._name.encode()
        return f"{self._name[:-1]}:{self._hash.hexdigest()[:_DIGITS]}]".encode()


class Marks:
    """
    Makes marks.

    Args:
        mode: How things are hidden.
        key: What hashes are keyed with; ``None``: a random one, so that hashes of two processes
            can't be compared.
    """

    __slots__ = ("_key", "mode")

    def __init__(self, mode: Mode, key: str | None) -> None:
        self.mode: Final = mode
        self._key: Final = secrets.token_bytes(32) if key is None else key.encode()

    def begin(self, rule: str) -> Mark:
        """A mark for something that the rule of this name found."""
        if self.mode == "remove":
            return Mark("", None)
        if self.mode == "mask":
            return Mark(f"[{rule}]", None)
        return Mark(f"[{rule}]", hmac.new(self._key, digestmod="sha256"))
