"""JSON for the wire: compact bytes, free of lone surrogates."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pai.schema import dump_json

__all__ = ("clean", "data_url", "dump", "joined", "loads")

loads: Callable[[str], Any] = json.loads


def clean(text: str) -> str:
    """The text with surrogate pairs joined and lone surrogates dropped."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return text


def dump(value: object) -> bytes:
    """Compact UTF-8 JSON."""
    text = dump_json(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return clean(text).encode()


def joined(items: list[bytes]) -> bytes:
    """What stands between the brackets of a JSON array; empty items vanish."""
    return b",".join([item for item in items if item])


def data_url(media_type: str, data: str) -> str:
    """A file's base64 content as an address."""
    return f"data:{media_type};base64,{data}"
