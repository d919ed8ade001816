"""Whatever the history: the model gets a valid one that is no longer, and the thread's own stays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import attrs
from hypothesis import given, settings, strategies as st
from pai_compaction import clear_tool_outputs, compaction, summarise, window
from pai_compaction._clearing import PLACEHOLDER, Clearing
from pai_compaction._sizer import Sizer
from pai_compaction._tokenizer import estimate

from pai import (
    ContextOverflow,
    DataPart,
    FilePart,
    Message,
    ModelError,
    ModelRequest,
    ReasoningPart,
    TextPart,
    ToolCallPart,
)
from pai.loop import repaired
from pai.protocol import parts_to_text
from pai.schema import check_json
from pai.testing import Fail, Finish, ScriptedModel

START = datetime(2030, 1, 1, tzinfo=UTC)
SIZER = Sizer(estimate, Clearing())

# Long enough to matter, and cheap to draw.
texts = st.sampled_from([0, 1, 2, 20, 60]).map("a\né 漢{".__mul__)
endings = st.sampled_from(["completed", "completed", "skipped", "failed", "denied", "interrupted"])


@st.composite
def calls(draw: st.DrawFn, *, may_be_open: bool) -> ToolCallPart:
    text, chance = draw(texts), draw(st.integers(0, 9))
    part = ToolCallPart("to be set", "look", {"q": text})
    if may_be_open and chance == 0:
        return part
    outcome = draw(endings)
    if outcome not in {"completed", "skipped"}:
        return attrs.evolve(part, outcome=outcome, error=text)
    output = text if chance < 5 else {"found": text * 9}
    return attrs.evolve(part, outcome=outcome, output=output, provider_executed=chance == 1)


def parts(*, may_be_open: bool) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(TextPart, texts),
        st.builds(ReasoningPart, texts),
        st.builds(DataPart, st.just("chart"), texts),
        calls(may_be_open=may_be_open),
    )


said = st.one_of(
    st.builds(TextPart, texts), st.just(FilePart("image/png", url="https://example.org/a.png"))
)


@st.composite
def histories(draw: st.DrawFn, *, may_be_open: bool = False) -> tuple[Message, ...]:
    found: list[Message] = []
    # A triggered run has no user's message; a cancelled one may have no answer.
    for role in draw(st.lists(st.sampled_from(["user", "user", "assistant"]), max_size=16)):
        one = said if role == "user" else parts(may_be_open=may_be_open)
        found.append(message(len(found), role, draw(st.lists(one, min_size=1, max_size=3))))
    return tuple(repaired(found)) if not may_be_open else tuple(found)


def message(index: int, role: Any, parts: Sequence[Any]) -> Message:
    made = tuple(
        attrs.evolve(part, call_id=f"c{index}.{at}") if isinstance(part, ToolCallPart) else part
        for at, part in enumerate(parts)
    )
    return Message(f"m{index}", role, made, "r", START + timedelta(seconds=index))


def turns(*texts: str, name: str = "") -> list[Message]:
    """A user's message and an answer for each."""
    roles = ("user", "assistant")
    both = [(role, text) for text in texts for role in roles]
    made = [message(index, role, [TextPart(text)]) for index, (role, text) in enumerate(both)]
    return [attrs.evolve(each, id=name + each.id) for each in made]


strategies = st.lists(
    st.one_of(
        st.builds(clear_tool_outputs, st.integers(1, 3)),
        st.builds(summarise, st.integers(1, 3), max_tokens=st.integers(50, 90)),
        st.builds(window, st.integers(1, 3)),
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def plugins(draw: st.DrawFn) -> Any:
    most = draw(st.integers(1, 300))
    target = draw(st.one_of(st.none(), st.integers(1, most)))
    return compaction(most, target=target, strategies=draw(strategies))


class Records:
    """Stored rows, as strict as the real ones."""

    def __init__(self) -> None:
        self.rows: dict[str, Any] = {}

    async def get(self, key: str) -> Any:
        return self.rows.get(key)

    async def put(self, key: str, value: Any) -> None:
        assert not list(check_json(value))
        assert 0 < len(key) <= 256
        self.rows[key] = value


@attrs.define
class World:
    """A plugin around a model, and a thread's rows."""

    plugin: Any
    answer: Any = "so it was"
    room: int = 10**9
    records: Any = attrs.field(factory=Records)
    state: dict[str, object] = attrs.field(factory=dict)
    events: list[Any] = attrs.field(factory=list)
    asked: list[ModelRequest] = attrs.field(factory=list)
    seen: list[ModelRequest] = attrs.field(factory=list)

    def turn(self, request: ModelRequest) -> Any:
        is_summary = any(each.id == "summary-request" for each in request.messages)
        (self.asked if is_summary else self.seen).append(request)
        if sum(SIZER.of(each).full for each in request.messages) > self.room:
            return Fail(ContextOverflow("too long", provider="scripted"))
        # The provider does not count.
        return [self.answer, Finish("stop")] if is_summary else Finish("stop")

    def send(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """One step; the messages that the model answered to."""
        request = ModelRequest(ScriptedModel(self.turn), tuple(messages))
        run = SimpleNamespace(id="r", emit=lambda name, value: self.events.append((name, value)))

        async def step() -> None:
            stream = self.plugin.wrap_model_call(
                SimpleNamespace(run=run, request=request, index=0),
                lambda asked: asked.model.stream(asked),
                self.state,
                self.records,
            )
            async for _ in stream:
                pass

        # Nothing in it waits for anything.
        try:
            step().send(None)
        except StopIteration:
            return tuple(self.seen[-1].messages)
        raise AssertionError("it waited")

    def again(self) -> World:
        """The same thread in another process."""
        return attrs.evolve(self, state={}, events=[], asked=[], seen=[])


def size(messages: Sequence[Message]) -> int:
    return sum(SIZER.of(each).full for each in messages)


def written(messages: Sequence[Message]) -> list[tuple[str, str, str]]:
    return [(each.id, each.role, parts_to_text(each.parts)) for each in messages]


def kept(messages: Sequence[Message]) -> list[Message]:
    return [each for each in messages if not each.id.startswith("summary:")]


@settings(deadline=None)
@given(histories(), plugins())
def test_the_result_is_valid_for_every_provider(history, plugin):
    result = World(plugin).send(history)
    assert all(a is b for a, b in zip(repaired(result), result, strict=True))
    if len(kept(result)) < len(history):
        assert result[0].role == "user"


@settings(deadline=None)
@given(histories(may_be_open=True), plugins())
def test_turns_and_calls_stay_whole_and_open_calls_pin_theirs(history, plugin):
    result = kept(World(plugin).send(history))
    begin = len(history) - len(result)
    assert [each.id for each in result] == [each.id for each in history[begin:]]
    assert begin == 0 or history[begin].role == "user"
    for before, after in zip(history[begin:], result, strict=True):
        for old, new in zip(before.parts, after.parts, strict=True):
            assert new == old or new == attrs.evolve(old, output=PLACEHOLDER)
            assert getattr(new, "outcome", None) == getattr(old, "outcome", None)
    for each in history[:begin]:
        assert all(getattr(part, "outcome", "") is not None for part in each.parts)


@settings(deadline=None)
@given(histories(may_be_open=True), plugins(), st.text("ab ", max_size=400))
def test_it_is_never_longer_and_the_event_says_so(history, plugin, answer):
    world = World(plugin, answer)
    result = world.send(history)
    assert size(result) <= size(history)
    for name, event in world.events:
        assert name == "compaction"
        assert event["before"] == size(history)
        assert event["after"] == size(result) <= event["before"]
        assert event["messages"] == {"before": len(history), "after": len(result)}
        assert (event["after"] < event["before"]) == bool(event["strategy"])
    assert bool(world.events) >= (result != history)


@settings(deadline=None)
@given(histories(may_be_open=True), plugins(), st.sampled_from(["so it was", "", "x" * 999]))
def test_the_history_itself_is_untouched(history, plugin, answer):
    before = written(history)
    World(plugin, answer).send(history)
    assert written(history) == before


@settings(deadline=None)
@given(histories(may_be_open=True), plugins())
def test_it_is_deterministic_and_done_once(history, plugin):
    world = World(plugin)
    first = world.send(history)
    asked, events = len(world.asked), len(world.events)
    # Once more in this episode: the very objects, so that drivers find what they encoded.
    second = world.send(history)
    assert all(a is b for a, b in zip(first, second, strict=True))
    # In another process: from the stored rows.
    other = world.again()
    assert written(other.send(history)) == written(first)
    if not any("failed" in event for _, event in world.events):
        assert not other.asked
    assert (len(world.asked), len(world.events)) == (asked, events)
    # From nothing.
    assert written(World(plugin).send(history)) == written(first)


@settings(deadline=None)
@given(histories(), plugins())
def test_its_own_result_is_left_alone(history, plugin):
    plugin = compaction(
        plugin._setup.budget.limit,
        target=plugin._setup.budget.target,
        strategies=[clear_tool_outputs(), window()],
    )
    first = World(plugin).send(history)
    assert written(World(plugin).send(first)) == written(first)


@settings(deadline=None)
@given(histories(), histories(), plugins())
def test_a_later_step_goes_on_from_an_earlier_one(history, more, plugin):
    world = World(plugin)
    first = world.send(history)
    grown = (*history, *[attrs.evolve(each, id=f"later-{each.id}") for each in more])
    events = len(world.events)
    second = world.send(grown)
    if len(world.events) == events:
        # Nothing had to be done: what providers have in their caches stays as it is.
        assert second[: len(first)] == first
    assert size(second) <= size(grown)


@settings(deadline=None)
@given(histories(), histories(), st.integers(1, 8), plugins())
def test_another_history_never_gets_a_summary_that_is_not_its_own(history, other, at, plugin):
    world = World(plugin)
    world.send(history)
    # As after a regeneration: the beginning is the same, the rest is not.
    branch = (*history[:at], *[attrs.evolve(each, id=f"other-{each.id}") for each in other])
    result = world.again().send(branch)
    ids = [each.id for each in branch]
    rest = kept(result)
    assert [each.id for each in rest] == ids[len(ids) - len(rest) :]
    if rest != list(result):
        covers = result[0].id.removeprefix("summary:")
        assert ids[len(ids) - len(rest) - 1] == covers or covers in ids


@settings(deadline=None)
@given(histories(), strategies, st.integers(20, 400))
def test_after_an_overflow_it_tries_once_more_with_less(history, chosen, room):
    world = World(compaction(strategies=chosen), room=room)
    try:
        result = world.send(history)
    except ContextOverflow:
        assert 1 <= len(world.seen) <= 2
        if len(world.seen) == 2:
            assert size(world.seen[1].messages) < size(world.seen[0].messages)
        return
    assert size(result) <= room
    assert len(world.seen) == (1 if size(history) <= room else 2)
    assert written(world.seen[0].messages) == written(history)


@settings(deadline=None)
@given(histories(), strategies)
def test_without_a_budget_it_stands_aside(history, chosen):
    world = World(compaction(strategies=chosen))
    result = world.send(history)
    assert all(a is b for a, b in zip(result, history, strict=True))
    assert not world.events
    assert not world.asked
    assert not world.records.rows


@settings(deadline=None)
@given(histories(), plugins())
def test_a_summary_that_fails_is_told_and_the_others_still_work(history, plugin):
    world = World(plugin, Fail(ModelError("no", provider="scripted", code="no_luck")))
    result = world.send(history)
    world.send(history)
    # Each strategy that asks does so once an episode.
    assert len(world.asked) <= len(plugin._setup.strategies)
    failed = [event["failed"] for _, event in world.events if "failed" in event]
    assert bool(failed) == bool(world.asked)
    assert all(each == {"summarise": "no_luck"} for each in failed)
    assert kept(result) == list(result)


def test_a_history_that_was_cut_back_gets_the_longest_summary_that_fits_it():
    world = World(compaction(1_000, target=600, strategies=[summarise(keep=1, max_tokens=50)]))
    history = turns(*["word " * 100] * 20)
    covers = []
    for length in range(2, len(history) + 1, 2):
        if world.send(history[:length])[0].id.startswith("summary:"):
            covers.append(world.seen[-1].messages[0].id.removeprefix("summary:"))
    first, last = covers[0], covers[-1]
    assert len(set(covers)) > 2
    ids = [each.id for each in history]
    asked = len(world.asked)

    def branch(at: int) -> str:
        """The history up to there, and one more turn."""
        other = [*history[:at], *turns("word " * 100, name="other-")]
        return world.again().send(other)[0].id.removeprefix("summary:")

    assert branch(len(history)) == last
    # One turn less than the last summary stands for: the one before it.
    at = ids.index(last) - 1
    assert branch(at) == [each for each in covers if each != last][-1]
    assert branch(ids.index(first) + 1) == first
    # Less than any: there is none, and the history is short enough.
    assert branch(ids.index(first) - 1) == ids[0]
    assert len(world.asked) == asked


@settings(deadline=None)
@given(histories(), strategies)
def test_a_request_that_fits_is_sent_as_it_is(history, chosen):
    world = World(compaction(max(1, size(history)), strategies=chosen))
    assert all(a is b for a, b in zip(world.send(history), history, strict=True))
    assert not world.events


def test_a_history_that_another_plugin_exchanged_is_looked_at_anew():
    world = World(compaction(200, strategies=[window()]))
    assert len(world.send(turns("x" * 400, "y" * 400))) == 2
    other = turns("one", "two", "three", name="other-")
    assert list(world.send(other)) == other


def test_what_was_left_out_comes_back_where_its_turn_goes_on():
    history = turns("x" * 400, "y" * 400)
    world = World(compaction(200, strategies=[window()]))
    assert list(world.send(history)) == history[2:]
    # The second turn is gone, and a triggered run has added to the first.
    branch = [*history[:2], message(7, "assistant", [TextPart("more")])]
    other = attrs.evolve(world.again(), plugin=compaction())
    assert list(other.send(branch)) == branch
    # As it was.
    assert list(other.again().send(history)) == history[2:]
