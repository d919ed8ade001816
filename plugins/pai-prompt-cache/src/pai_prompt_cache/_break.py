"""A break: what of the prefix changed since the last step (O-12)."""

from __future__ import annotations

import attrs

from pai.schema import JsonObject
from pai_prompt_cache._prefix import Head, Prefix

__all__ = ("Break", "find_break")


@attrs.frozen
class Break:
    """
    What the last step left in the provider's cache is of no use from here on.

    Args:
        at: The first thing that changed: ``model``, ``instructions``, ``tools``, ``output`` or
            ``message N``, counted from 0.
        changed: All things that changed, in order.
        before: The prefix hash of the last step.
        after: The prefix hash of this one.
        kept: Messages that are still in the cache.
        lost: Messages of the last step that are not.
        details: What exactly: names of tools, numbers of instructions, the other model.
    """

    at: str
    changed: tuple[str, ...]
    before: str
    after: str
    kept: int
    lost: int
    details: JsonObject

    def as_json(self, step: int) -> JsonObject:
        """The break as the plugin's event has it."""
        return {
            "step": step,
            "at": self.at,
            "changed": list(self.changed),
            "before": self.before,
            "after": self.after,
            "kept": self.kept,
            "lost": self.lost,
            **self.details,
        }


def find_break(old: Prefix, new: Prefix) -> Break | None:
    """
    What of *old* is not at the beginning of *new*; ``None`` if nothing is.

    A shorter history that *old* begins with is no break: all of it is in the cache.
    """
    details = _head_changes(old.head, new.head)
    changed = list(details)
    common = old.common(new)
    if common < min(len(old.hashes), len(new.hashes)):
        changed.append(f"message {common}")
    if not changed:
        return None
    kept = 0 if details else common
    return Break(
        changed[0], tuple(changed), old.hash, new.hash, kept, len(old.hashes) - kept, details
    )


def _head_changes(old: Head, new: Head) -> JsonObject:
    changes: JsonObject = {}
    if old.model != new.model:
        changes["model"] = {"before": old.model, "after": new.model}
    if old.instructions != new.instructions:
        longest = max(len(old.instructions), len(new.instructions))
        changes["instructions"] = [
            index
            for index in range(longest)
            if old.instructions[index : index + 1] != new.instructions[index : index + 1]
        ]
    if list(old.tools.items()) != list(new.tools.items()):
        changes["tools"] = {
            "added": [name for name in new.tools if name not in old.tools],
            "removed": [name for name in old.tools if name not in new.tools],
            "changed": [
                name for name, item in new.tools.items() if old.tools.get(name, item) != item
            ],
            "moved": [name for name in old.tools if name in new.tools]
            != [name for name in new.tools if name in old.tools],
        }
    if old.output != new.output:
        changes["output"] = True
    return changes
