"""What leaves for the stream of a step."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pai_redaction import Rule, redaction

from pai import (
    Data,
    File,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    StepFinish,
    StepReset,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)

MAIL = "alice@example.com"


def through(*parts: Any, plugin: Any = None, state: dict[str, object] | None = None) -> list[Any]:
    """What the plugin makes of a stream; nothing in it ever waits."""

    async def stream() -> Any:
        for part in parts:
            yield part

    out = (plugin or PLUGIN).transform_step_stream(stream(), {} if state is None else state)
    found = []

    async def read() -> None:
        async for part in out:
            found.append(part)

    with pytest.raises(StopIteration):
        read().send(None)
    return found


PLUGIN = redaction()


def test_text_is_flushed_before_its_end_is_told() -> None:
    assert through(
        TextStart("t"), TextDelta("t", "Ask ali"), TextDelta("t", "ce@example.c"),
        TextDelta("t", "om"), TextEnd("t"), StepFinish("stop"),
    ) == [
        TextStart("t"), TextDelta("t", "Ask "), TextDelta("t", "[email]"), TextEnd("t"),
        StepFinish("stop"),
    ]  # fmt: skip


def test_what_has_nothing_to_hide_passes_as_it_is() -> None:
    parts = [TextStart("t"), TextDelta("t", "Hello. "), TextEnd("t", {"x": {"id": "1"}}),
             Source("s", "https://example.com"), File("image/png", data="AAAA"),
             Data("n", {"a": [1, None, True, 2.5]}), ToolCall("c", "add", {"a": 1}),
             StepFinish("stop", output={"a": None})]  # fmt: skip
    for old, new in zip(parts, through(*parts), strict=True):
        assert new is old


def test_an_output_that_is_a_value_of_its_own() -> None:
    """O-11"""
    finish = StepFinish("stop", output={"to": [MAIL], "n": None})
    assert through(finish) == [StepFinish("stop", output={"to": ["[email]"], "n": None})]
    assert through(StepFinish("stop", output=MAIL)) == [StepFinish("stop", output="[email]")]


def test_texts_and_reasonings_of_one_id_are_told_apart() -> None:
    out = through(
        TextStart("1"), ReasoningStart("1"), TextDelta("1", "alice@"), ReasoningDelta("1", "bob@"),
        TextDelta("1", "x "), ReasoningDelta("1", "b.org"), ReasoningEnd("1"), TextEnd("1"),
    )  # fmt: skip
    assert out[2:] == [
        TextDelta("1", "alice@x "), ReasoningDelta("1", "[email]"), ReasoningEnd("1"), TextEnd("1"),
    ]  # fmt: skip


def test_a_reset_drops_what_is_held_back_and_passes() -> None:
    """R-13, R-37"""
    assert through(
        TextStart("t"), TextDelta("t", "alice@example.com"), ReasoningStart("r"),
        ReasoningDelta("r", "ali"), ToolInputStart("c", "x"), ToolInputDelta("c", '{"a'),
        StepReset("retry"),
        TextStart("t"), TextDelta("t", "bob"), TextEnd("t"), ReasoningStart("r"), ReasoningEnd("r"),
        ToolInputStart("c", "x"), ToolCall("c", "x", {}), StepFinish("stop"),
    ) == [
        TextStart("t"), ReasoningStart("r"), ToolInputStart("c", "x"), StepReset("retry"),
        TextStart("t"), TextDelta("t", "bob"), TextEnd("t"), ReasoningStart("r"), ReasoningEnd("r"),
        ToolInputStart("c", "x"), ToolCall("c", "x", {}), StepFinish("stop"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "data", "kept"),
    [
        ("Hello", {"p": {"id": "1"}}, True),
        (MAIL, {"p": {"id": "1"}}, False),
        ("Hello", {"p": {"item": {"text": MAIL}}}, False),
    ],
)
def test_what_the_provider_wants_back_goes_with_what_it_belongs_to(
    text: Any, data: Any, kept: Any
) -> None:
    after = data if kept else None
    assert through(TextStart("t"), TextDelta("t", text), TextEnd("t", data))[-1] == TextEnd(
        "t", after
    )
    thought = through(ReasoningStart("t"), ReasoningDelta("t", text), ReasoningEnd("t", data))
    assert thought[-1] == ReasoningEnd("t", after)
    [call] = through(ToolCall("c", "x", {"a": text}, provider_data=data))
    assert call.provider_data == after
    [source] = through(Source("s", title=text, provider_data=data))
    assert source.provider_data == after


def test_whole_parts_are_looked_at() -> None:
    assert through(
        Source(f"mailto:{MAIL}", f"https://x.org/?m={MAIL}", MAIL, filename=f"{MAIL}.txt"),
        File("text/plain", url=f"https://x.org/{MAIL}", filename=MAIL),
        Data("contact", {"who": [MAIL, 4111111111111111, 1.5]}, "d", transient=True),
    ) == [
        Source("mailto:[email]", "https://x.org/?m=[email]", "[email]", filename="[email]"),
        File("text/plain", url="https://x.org/[email]", filename="[email]"),
        Data("contact", {"who": ["[email]", "[card]", 1.5]}, "d", transient=True),
    ]


# ---------------------------------------------------------------------- inputs of tools


def called(text: str, *, chunk: int = 3, plugin: Any = None) -> tuple[str, Any]:
    """The text of the deltas that leave for an input's, and the call."""
    deltas = [
        ToolInputDelta("c", text[at : at + chunk]) for at in range(0, len(text), chunk)
    ]  # fmt: skip
    try:
        call = ToolCall("c", "x", json.loads(text))
    except ValueError:
        call = ToolCall("c", "x", None, raw=text)
    out = through(ToolInputStart("c", "x"), *deltas, call, plugin=plugin)
    told = "".join([part.text for part in out if isinstance(part, ToolInputDelta)])
    return told, out[-1]


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        (f'{{"to": "{MAIL}"}}', {"to": "[email]"}),
        (r'{"to": "alice\u0040example.com"}', {"to": "[email]"}),
        (r'{"to": "Hi\n\u0061lice\u0040example\u002ecom."}', {"to": "Hi\n[email]."}),
        (f'{{"{MAIL}": 1, "bob@x.org": 2}}', {"[email]": 1, "[email] (2)": 2}),
        (f'{{"[email]": 0, "{MAIL}": 1}}', {"[email]": 0, "[email] (2)": 1}),
        ('{"card": 4111111111111111}', {"card": "[card]"}),
        (f'{{"to": "{MAIL}", "to": "nobody"}}', {"to": "nobody"}),
        ('{"a": {"b": ["x", "10.0.0.1", null, true]}}', {"a": {"b": ["x", "[ip]", None, True]}}),
    ],
)
def test_the_text_of_an_input_is_that_of_what_is_stored(text: Any, hidden: Any) -> None:
    told, call = called(text)
    assert json.loads(told) == call.input == hidden


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([MAIL, "x", 'é\n"\\', "10.0.0.1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(JSON, st.booleans(), st.integers(1, 9))
def test_every_input_stays_json(value: Any, ascii_only: Any, chunk: Any) -> None:
    """A-LIFE-5"""
    escaped = json.dumps(value, ensure_ascii=ascii_only).replace("@", r"\u0040")
    told, call = called(escaped, chunk=chunk)
    assert json.loads(told) == call.input
    plain = json.dumps(call.input)
    assert MAIL not in plain
    assert "10.0.0.1" not in plain
    if MAIL not in json.dumps(value) and "10.0.0.1" not in json.dumps(value):
        assert call.input == value


def test_broken_json_is_hidden_too() -> None:
    told, call = called(rf'{{"to": "{MAIL}", ')
    assert told == call.raw == '{"to": "[email]", '
    told, call = called(r'{"to": "alice\u0040example.com", ')
    assert told == call.raw == '{"to": "[email]", '
    told, call = called(r'{"to": "\u0041lice", ')
    assert told == call.raw == r'{"to": "\u0041lice", '


def test_an_input_that_is_cut_off_is_hidden_too() -> None:
    text = r'{"to": "alice\u0040example.com'
    out = through(ToolInputStart("c", "x"), ToolInputDelta("c", text), StepFinish("length"))
    assert out[1:] == [ToolInputDelta("c", '{"to": "[email]'), StepFinish("length")]


def test_an_input_that_is_no_json_stays_plain() -> None:
    text = f"select '{MAIL}'"
    out = through(ToolInputStart("c", "x"), ToolInputDelta("c", text), ToolCall("c", "x", text))
    assert out[1:] == [
        ToolInputDelta("c", "select '[email]'"),
        ToolCall("c", "x", "select '[email]'"),
    ]


def test_calls_side_by_side_are_told_apart() -> None:
    pieces = itertools.chain.from_iterable(
        (ToolInputDelta("a", one), ToolInputDelta("b", two))
        for one, two in zip('["a@b.cc"]', '["x@y.zz"]', strict=True)
    )
    out = through(
        ToolInputStart("a", "x"), ToolInputStart("b", "x"), *pieces,
        ToolCall("b", "x", ["x@y.zz"]), ToolCall("a", "x", ["a@b.cc"]),
    )  # fmt: skip
    assert [part.call_id for part in out] == ["a", "b", "b", "b", "a", "a"]
    assert out[2].text == out[4].text == '["[email]"]'


def test_inputs_can_be_left_alone() -> None:
    plugin = redaction(tool_inputs=False)
    text = f'{{"to": "{MAIL}"}}'
    out = through(
        ToolInputStart("c", "x"), ToolInputDelta("c", text[:9]), ToolInputDelta("c", text[9:]),
        ToolCall("c", "x", {"to": MAIL}, provider_executed=True, output=MAIL), plugin=plugin,
    )  # fmt: skip
    assert "".join([part.text for part in out[1:3]]) == text
    assert (out[3].input, out[3].output) == ({"to": MAIL}, "[email]")


def test_what_the_provider_ran_is_looked_at() -> None:
    [call] = through(
        ToolCall("c", "search", {"q": MAIL}, provider_executed=True, output=[MAIL], error=MAIL)
    )
    assert (call.input, call.output, call.error) == ({"q": "[email]"}, ["[email]"], "[email]")


def test_what_is_open_at_the_finish_is_flushed() -> None:
    out = through(
        TextStart("t"), TextDelta("t", MAIL), ReasoningStart("r"), ReasoningDelta("r", "bob"),
        StepFinish("stop"),
    )  # fmt: skip
    assert out[2:] == [TextDelta("t", "[email]"), ReasoningDelta("r", "bob"), StepFinish("stop")]


@given(
    st.lists(st.tuples(st.sampled_from("tr"), st.text("ab@. ", max_size=4)), max_size=20),
)
def test_streams_side_by_side_are_each_the_whole_redacted(deltas: Any) -> None:
    """A-LIFE-6"""
    plugin = redaction([], [Rule("r", "a[ab.]*@b+", 8), Rule("s", r"\.\.", 2)])
    parts: list[Any] = [
        TextDelta("1", text) if kind == "t" else ReasoningDelta("1", text) for kind, text in deltas
    ]
    out = through(*parts, TextEnd("1"), ReasoningEnd("1"), plugin=plugin)
    for kind, letter in ((TextDelta, "t"), (ReasoningDelta, "r")):
        whole = "".join([text for each, text in deltas if each == letter])
        told = [part.text for part in out if type(part) is kind]
        assert "".join(told) == plugin.redact(whole)
        assert "" not in told
