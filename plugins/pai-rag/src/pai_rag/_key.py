"""What can be part of a key."""

from __future__ import annotations

from pai import Fault, InvalidInput

__all__ = ("check_key", "text_fault")


def text_fault(text: str, *, empty: bool = False) -> str | None:
    """Why a database would refuse *text*."""
    if not text and not empty:
        return "is empty"
    if "\x00" in text:
        return "holds a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half of a surrogate pair"
    return None


def check_key(value: object, at: str) -> str:
    """
    A partition, or another part of a key.

    Raises:
        InvalidInput: It can be none.
    """
    if not isinstance(value, str):
        fault = Fault(at, f"expected text, got {type(value).__name__}")
    elif told := text_fault(value):
        fault = Fault(at, told)
    else:
        return value
    raise InvalidInput([fault], subject="index")
