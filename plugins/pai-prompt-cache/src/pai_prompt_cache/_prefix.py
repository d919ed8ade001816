"""What a provider caches of a request: everything before the answer, in order."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

import attrs

from pai import Message, ModelRequest
from pai_prompt_cache._digest import digest, of_instructions, of_message, of_tool
from pai_prompt_cache._fnv import EMPTY, fnv1a

__all__ = ("Chain", "Head", "Prefix")


@attrs.frozen
class Head:
    """
    What stands before the messages, each as a digest.

    Args:
        model: The model's name: each has a cache of its own.
        instructions: A digest a message.
        tools: Digests by name, in order; a provider's own tools after the others.
        output: Of the schema of the answer.
    """

    model: str
    instructions: tuple[bytes, ...]
    tools: Mapping[str, bytes]
    output: bytes

    @classmethod
    def of(cls, request: ModelRequest) -> Head:
        """The head of a request."""
        model = request.model
        return cls(
            model if isinstance(model, str) else f"{model.provider}:{model.name}",
            tuple([of_instructions(message) for message in request.instructions]),
            {
                **{tool.name: of_tool(tool) for tool in request.tools},
                **{f"{t.provider}:{t.name}": of_tool(t) for t in request.provider_tools},
            },
            digest(request.output),
        )

    @property
    def hash(self) -> int:
        """FNV-1a of the model's name and the digests, one after another."""
        value = fnv1a(self.model.encode())
        for item in (*self.instructions, *self.tools.values(), self.output):
            value = fnv1a(item, value)
        return value


@attrs.frozen(eq=False)
class Chain:
    """
    The messages, as hashes of all up to each.

    Two histories have their first *n* messages in common where their hashes agree at *n* - 1.

    Args:
        messages: The messages.
        hashes: FNV-1a of the digests of the messages up to and including each.
    """

    messages: Sequence[Message]
    hashes: array[int]

    @classmethod
    def of(cls, messages: Sequence[Message], before: Chain | None = None) -> Chain:
        """
        The chain of *messages*.

        Args:
            messages: The messages; they never change, so the same object needs no second look.
            before: An earlier chain, of which the beginning is kept as far as it is the same.
        """
        kept = 0
        hashes = array("I")
        if before is not None:
            for ours, theirs in zip(messages, before.messages, strict=False):
                if ours is not theirs:
                    break
                kept += 1
            hashes = before.hashes[:kept]
        value = hashes[-1] if kept else EMPTY
        for message in messages[kept:]:
            value = fnv1a(of_message(message), value)
            hashes.append(value)
        return cls(messages, hashes)


@attrs.frozen(eq=False)
class Prefix:
    """
    What is remembered of a request: no content, only hashes and the names of tools.

    Args:
        head: What stands before the messages.
        hashes: The chain's.
    """

    head: Head
    hashes: array[int]

    @property
    def hash(self) -> str:
        """The hash of all of it, eight hexadecimal digits."""
        last = self.hashes[-1] if self.hashes else EMPTY
        return f"{fnv1a(last.to_bytes(4, 'big'), self.head.hash):08x}"

    def common(self, other: Prefix) -> int:
        """How many messages both begin with, whatever stands before them."""
        low, high = 0, min(len(self.hashes), len(other.hashes))
        while low < high:
            middle = (low + high + 1) // 2
            if self.hashes[middle - 1] == other.hashes[middle - 1]:
                low = middle
            else:
                high = middle - 1
        return low
