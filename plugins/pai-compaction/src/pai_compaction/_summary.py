"""A summary of the beginning of a history: :class:`Summary`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import attrs

from pai import Message, TextPart

__all__ = ("Summary", "fingerprint")

_TEXT = """\
[Summary of the earlier conversation. It stands in place of {messages} older messages; what follows \
it is the conversation itself.]

{text}

[End of the summary]"""


@attrs.frozen
class Summary:
    """
    What stands in place of the oldest messages.

    Args:
        text: What the model wrote.
        covers: The id of the last message it stands for.
        messages: How many messages that are.
        fingerprint: Of the ids of all of them, so that it is never taken for that of another
            history.
        extends: The id of the last message of the summary it was made from, if it was.
    """

    text: str
    covers: str
    messages: int
    fingerprint: str
    extends: str | None = None

    def fits(self, messages: Sequence[Message]) -> bool:
        """Whether *messages* begin with what it stands for."""
        covered = messages[: self.messages]
        return len(covered) == self.messages and self.fingerprint == fingerprint(covered)

    def as_message(self, last: Message) -> Message:
        """
        The message that the model reads: a user's, since nothing in it is an instruction of ours.

        Args:
            last: The last message it stands for.
        """
        text = _TEXT.format(messages=self.messages, text=self.text)
        return Message(
            f"summary:{self.covers}", "user", (TextPart(text),), last.run_id, last.created_at
        )

    def to_json(self) -> dict[str, object]:
        """As it is stored."""
        return attrs.asdict(self)

    @classmethod
    def from_json(cls, value: object) -> Summary | None:
        """What was stored; ``None`` for anything else."""
        if not isinstance(value, Mapping):
            return None
        try:
            text, covers, messages, print_, extends = (
                value[each] for each in ("text", "covers", "messages", "fingerprint", "extends")
            )
        except KeyError:
            return None
        if not (
            isinstance(text, str)
            and isinstance(covers, str)
            and isinstance(messages, int)
            and isinstance(print_, str)
            and (extends is None or isinstance(extends, str))
        ):
            return None
        return cls(text, covers, messages, print_, extends)


def fingerprint(messages: Sequence[Message]) -> str:
    """What tells one sequence of messages from another, by their ids."""
    joined = "\n".join([message.id for message in messages])
    return sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]
