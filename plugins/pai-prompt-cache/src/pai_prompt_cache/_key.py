"""The key of a prompt cache: made of ids that the caller gave, and of nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any

from pai import DefinitionError, Fault, RunContext
from pai_prompt_cache._digest import digest

__all__ = ("DEFAULT_KEY", "Key", "MakeKey", "key_of")

MakeKey = Callable[[RunContext[Any]], str | None]
"""Makes the key of a run itself."""

Key = Iterable[str] | MakeKey | None

DEFAULT_KEY = ("agent", "identity")


def key_of(key: Key) -> MakeKey:
    """
    What makes the key of a run.

    Args:
        key: Names of ids, or a function, which is taken at its word; ``None`` or no name: no key.

    Raises:
        DefinitionError: A name is none of those.
    """
    if callable(key):
        return key
    names = (key,) if isinstance(key, str) else tuple(key or ())
    faults = [
        Fault(f"key[{index}]", 'expected "agent", "thread", "identity", or "identity.FIELD"')
        for index, name in enumerate(names)
        if not _is_id(name)
    ]
    if faults:
        raise DefinitionError(faults, subject="prompt_cache")
    if not names:
        return lambda run: None

    def make(run: RunContext[Any]) -> str:
        # A hash, since an id may be a person's, and a provider takes 64 characters.
        values = b"".join([digest([name, _value(run, name)]) for name in names])
        return blake2b(values, digest_size=16).hexdigest()

    return make


def _is_id(name: object) -> bool:
    if not isinstance(name, str):
        return False
    root, dot, path = name.partition(".")
    if dot:
        return root == "identity" and all(path.split("."))
    return root in {"agent", "thread", "identity"}


def _value(run: RunContext[Any], name: str) -> object:
    root, _, path = name.partition(".")
    if root == "agent":
        return run.agent.name
    if root == "thread":
        return run.thread_id
    value = run.identity
    for field in path.split(".") if path else ():
        value = value.get(field) if isinstance(value, Mapping) else getattr(value, field, None)
    return value
