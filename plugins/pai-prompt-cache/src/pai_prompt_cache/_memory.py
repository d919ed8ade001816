"""The last prefix of each thread, in this process."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from pai import RunContext
from pai_prompt_cache._digest import digest
from pai_prompt_cache._prefix import Prefix

__all__ = ("Memory",)


class Memory:
    """
    The last prefixes; of many threads, those that were used last.

    Args:
        threads: How many are kept.
    """

    __slots__ = ("_prefixes", "_threads")

    def __init__(self, threads: int = 1000) -> None:
        self._threads = threads
        self._prefixes: OrderedDict[tuple[str, str, bytes], Prefix] = OrderedDict()

    def swap(self, run: RunContext[Any], prefix: Prefix) -> Prefix | None:
        """
        Remember a prefix, and give the one before.

        A thread's id can repeat in another partition, so who it is for is part of the key
        (A-CTX-3).
        """
        key = (run.agent.name, run.thread_id, digest(run.identity))
        before = self._prefixes.pop(key, None)
        self._prefixes[key] = prefix
        if len(self._prefixes) > self._threads:
            self._prefixes.popitem(last=False)
        return before

    def __len__(self) -> int:
        return len(self._prefixes)
