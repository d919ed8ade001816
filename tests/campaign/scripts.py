"""What the model of a campaign says; like all that runs are about, it follows from a run's number."""

from __future__ import annotations

from pai.testing import Call, Data, Fail, Reason, Turn

__all__ = ("KINDS", "content", "done_by_helper", "kind_of", "number_of", "thread_of", "turns_of")


def _text(number: int) -> list[Turn]:
    return [f"The answer to {number} is long enough to be streamed in some batches."]


def _calls(number: int) -> list[Turn]:
    return [
        [
            f"I call for {number}.",
            Call("once", {"n": number}, "once-0"),
            Call("again", {"n": number}, "again-0"),
            Call("sync", {"n": number}, "sync-0"),
        ],
        ["Once more.", Call("once", {"n": number}, "once-1")],
        f"All of {number} is done.",
    ]


def _data(number: int) -> list[Turn]:
    return [
        [Reason(f"thinking of {number}"), "See:", Data("note", f"stream {number}")],
    ]


def _notes(number: int) -> list[Turn]:
    return [[Call("again", {"n": number}, "again-0")], [Reason("so"), f"Noted {number}."]]


def _broken(number: int) -> list[Turn]:
    return [["I try.", Call("broken", {"n": number}, "broken-0")], f"It failed, {number}."]


def _fails(number: int) -> list[Turn]:
    return [["I call.", Call("once", {"n": number}, "once-0")], ["I break", Fail()]]


def _approved(number: int) -> list[Turn]:
    return [
        [
            "May I?",
            Call("gated", {"n": number}, "gated-0"),
            Call("once", {"n": number}, "once-0"),
        ],
        f"You have decided on {number}.",
    ]


def _asked(number: int) -> list[Turn]:
    return [["Which?", Call("asks", {"n": number}, "asks-0")], f"So it is {number}."]


def _client(number: int) -> list[Turn]:
    return [
        [
            "Where are you?",
            Call("client", {"n": number}, "client-0"),
            Call("once", {"n": number}, "once-0"),
        ],
        ["And since when?", Call("brought", {"n": number}, "brought-0")],
        f"So you are there, {number}.",
    ]


def _mixed(number: int) -> list[Turn]:
    return [
        [
            "Some things.",
            Call("gated", {"n": number}, "gated-0"),
            Call("client", {"n": number}, "client-0"),
            Call("again", {"n": number, "slow": True}, "again-0"),
            Call("asks", {"n": number}, "asks-0"),
            Call("client", {"n": number}, "client-1"),
        ],
        ["One more.", Call("client", {"n": number}, "client-2")],
        f"That is all for {number}.",
    ]


def _helped(number: int) -> list[Turn]:
    return [
        [
            "Others do it.",
            Call("helper", {"prompt": f"help {number}"}, "helper-0"),
            Call("once", {"n": number}, "once-0"),
        ],
        f"Others have done {number}.",
    ]


def done_by_helper(number: int) -> str:
    """What the subagent gives to its parent."""
    return f"I helped with {number}, as far as I was allowed to."


def _help(number: int) -> list[Turn]:
    return [["May I?", Call("gated", {"n": number}, "gated-0")], done_by_helper(number)]


# Of a number without a divisor in common with 2, 4, 5: all of a kind are not of a thread, or denied.
KINDS = {
    "text": _text, "calls": _calls, "data": _data, "notes": _notes, "broken": _broken,
    "approved": _approved, "asked": _asked, "client": _client, "mixed": _mixed, "fails": _fails,
    "cancelled": _calls, "helped": _helped, "undone": _helped,
}  # fmt: skip
"""Kind -> what its model says, turn by turn."""


def turns_of(kind: str, number: int) -> list[Turn]:
    """What the model says in a run; of the kind ``help``, in one of the subagent."""
    return (_help if kind == "help" else KINDS[kind])(number)


def kind_of(number: int) -> str:
    return list(KINDS)[number % len(KINDS)]


def content(number: int) -> str:
    return f"{kind_of(number)} {number}"


def thread_of(number: int) -> str:
    """Some threads at a time, each with runs of every kind, from every slot."""
    return f"t{number // 160}-{number % 5}"


def number_of(run_id: str) -> int:
    return int(run_id.rpartition("-")[2])
