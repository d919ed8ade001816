"""Runs with the plugin, and how it is made."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import attrs
import pytest
from pai_redaction import Redaction, Rule, redaction
from pai_redaction.plugin import Options, register_lifecycle

from pai import (
    DataPart,
    DefinitionError,
    FilePart,
    ReplaceInput,
    Respond,
    TextDelta,
    ToolError,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
    tool,
)
from pai.schema import compile_schema
from pai.testing import Call, Reason, ScriptedModel

MAIL = "alice@example.com"


@attrs.define
class Card:
    owner: str


@attrs.define
class Sum:
    number: int


@tool(data=Card)
def look_up(ctx: Any, who: str) -> str:
    """Look somebody up."""
    ctx.write_data("card", Card(f"is {MAIL}"))
    ctx.progress(Card(MAIL))
    return f"{who}: bob@example.com"


@tool
def fail(ctx: Any) -> str:
    """Fail."""
    raise ToolError(f"{MAIL} is unknown")


@tool
def count(ctx: Any) -> Sum:
    """Count."""
    return Sum(4111111111111111)


def agent(*turns: Any, lifecycle: Any = None, **options: Any) -> Any:
    model = ScriptedModel([*turns], chunk=3)
    return model, define_agent(
        name="a",
        model=model,
        tools={"look_up": look_up, "fail": fail, "count": count},
        ui_data={"card": Card},
        lifecycle=redaction() if lifecycle is None else lifecycle,
        **options,
    )


async def run(defined: Any, content: Any) -> tuple[list[Any], Any, Any]:
    """Events, result and thread state of one run, and that the secret is in none of them."""
    async with create_pai(agents={"a": defined}, plugins=()) as app:
        thread = app.thread("a")
        handle = await thread.send(content)
        events = [event async for event in handle.events()]
        result = await handle.result()
        state = await thread.state()
    for told in (events, result, state):
        assert MAIL not in repr(told)
    return events, result, state


@pytest.mark.anyio
async def test_nothing_of_a_run_holds_the_secret() -> None:
    """A-LIFE-5, A-LIFE-6"""
    model, defined = agent(
        [Reason(f"I ask {MAIL}."), f"Asking {MAIL} now.", Call("look_up", {"who": MAIL})],
        [Call("fail")],
        f"It was {MAIL}",
    )
    file = FilePart("text/plain", data="AAAA", filename=f"{MAIL}.txt")
    events, result, state = await run(
        defined, [f"Find {MAIL}!", file, DataPart("card", {"owner": MAIL})]
    )
    assert result.text == "It was [email]"
    user, *answers = state.messages
    assert [part.text for part in user.parts[:1]] == ["Find [email]!"]
    assert (user.parts[1].filename, user.parts[2].value) == ("[email]", {"owner": "[email]"})
    reasoning, text, call, data = answers[0].parts
    assert (reasoning.text, text.text) == ("I ask [email].", "Asking [email] now.")
    assert (call.input, call.output) == ({"who": "[email]"}, "[email]: [email]")
    assert data.value == {"owner": "is [email]"}
    assert answers[1].parts[0].error == "[email] is unknown"
    [progress] = [event for event in events if event.type == "tool-progress"]
    assert progress.value == {"owner": "[email]"}
    for request in model.requests:
        assert MAIL not in repr(request.messages)


class Meddling:
    """Writes secrets wherever a plugin can."""

    @hookimpl
    def accept_message(self, message: Any) -> Any:
        assert MAIL in repr(message)
        return attrs.evolve(message, parts=(*message.parts, DataPart("card", {"owner": MAIL})))

    @hookimpl(trylast=True)
    async def transform_step_stream(self, stream: Any) -> Any:
        async for part in stream:
            yield TextDelta(part.id, f"{part.text}@b.org ") if type(part) is TextDelta else part

    @hookimpl
    def rewrite_tool_input(self, call: Any) -> Any:
        return ReplaceInput({"who": f"{call.input['who']}, {MAIL}"})


@pytest.mark.anyio
@pytest.mark.parametrize("first", [True, False])
async def test_it_stands_last(first: Any) -> None:
    """A-LIFE-2"""
    # Of two that want to be last, the right one is.
    plugins = [redaction(), early()] if first else [Meddling(), redaction()]
    _, defined = agent(
        [f"Hi {MAIL}", Call("look_up", {"who": "Bob"})],
        "bye",
        lifecycle=compose_lifecycle(*plugins),
    )
    _, _, state = await run(defined, f"Find {MAIL}!")
    call = next(part for part in state.messages[1].parts if part.type == "tool-call")
    assert call.input == {"who": "Bob, [email]"}


def early() -> object:
    """The same without ``trylast``."""

    class Early(Meddling):
        @hookimpl
        async def transform_step_stream(self, stream: Any) -> Any:
            async for part in stream:
                yield part

    return Early()


@pytest.mark.anyio
async def test_an_answer_without_a_model_is_looked_at() -> None:
    """R-26"""

    class Answer:
        @hookimpl
        def prepare_run(self, run: Any) -> Any:
            return Respond(f"Ask {MAIL}.")

    _, defined = agent(lifecycle=compose_lifecycle(redaction(), Answer()))
    _, result, _ = await run(defined, "Hello")
    assert result.text == "Ask [email]."


@pytest.mark.anyio
async def test_an_output_that_fits_its_schema_no_more_fails_the_call() -> None:
    """A-TOOL-6: rather no number than the secret."""
    _, defined = agent([Call("count")], "ok")
    events, _, _ = await run(defined, "Count")
    [error] = [event for event in events if event.type == "tool-error"]
    assert error.error == "The output of 'count' does not fit its schema."


@pytest.mark.anyio
async def test_a_tool_can_get_the_real_value() -> None:
    seen = []

    @tool
    def note(ctx: Any, who: str) -> str:
        """Note."""
        seen.append(who)
        return "ok"

    model = ScriptedModel([[Call("note", {"who": MAIL})], "ok"] * 2)
    for inputs in (True, False):
        plugin = redaction(tool_inputs=inputs)
        defined = define_agent(name="a", model=model, tools={"note": note}, lifecycle=plugin)
        await run_once(defined, "Hello")
    assert seen == ["[email]", MAIL]


def test_modes() -> None:
    text = f"{MAIL} and {MAIL} and bob@b.org"
    assert redaction().redact(text) == "[email] and [email] and [email]"
    assert redaction(mode="remove").redact(text) == " and  and "
    hashed = redaction(mode="hash", key="k").redact(text)
    one, two, other = hashed.split(" and ")
    assert one == two != other
    assert one.startswith("[email:")
    assert len(one) == len("[email:]") + 12
    assert redaction(mode="hash", key="k").redact(text) == hashed
    assert redaction(mode="hash", key="l").redact(text) != hashed
    assert redaction(mode="hash").redact(text) != redaction(mode="hash").redact(text)


def test_packs_and_rules_can_be_chosen() -> None:
    text = f"{MAIL} T-1234 10.0.0.1"
    ticket = Rule("ticket", r"T-\d+", 16)
    assert redaction(["ip"]).redact(text) == f"{MAIL} T-1234 [ip]"
    assert redaction([], [ticket]).redact(text) == f"{MAIL} [ticket] 10.0.0.1"
    assert redaction(rules=[ticket]).redact(text) == "[email] [ticket] [ip]"
    # One's own rule names what it finds before a pack does.
    assert redaction(rules=[Rule("staff", r"\w+@example\.com", 64)]).redact(MAIL) == "[staff]"


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(DefinitionError) as caught:
        redaction(["emial", "ip"], ["x"], "hide", key="")  # type: ignore[list-item, arg-type]  # the mistakes
    assert [fault.path for fault in caught.value.faults] == ["rules[0]", "packs", "mode", "key"]
    assert "did you mean 'email'?" in str(caught.value)
    with pytest.raises(DefinitionError, match="expected a list of names"):
        redaction("email")


def test_the_options_of_a_file_make_the_plugin() -> None:
    """R-36"""
    options = compile_schema(Options).parse(
        {
            "packs": ["ip"],
            "rules": [{"name": "ticket", "pattern": "T-[0-9]+", "max_length": 16}],
            "mode": "hash",
            "key": "k",
            "tool_inputs": False,
        }
    )
    assert isinstance(options, Options)
    plugin = register_lifecycle(options)
    assert plugin.redact(f"{MAIL} 10.0.0.1 T-1").startswith(f"{MAIL} [ip:")


def test_without_options_it_works() -> None:
    """A-LIFE-5"""
    plugin = register_lifecycle(compile_schema(Options).parse({}))
    assert isinstance(plugin, Redaction)
    assert plugin.position == "last"
    assert plugin.redact(MAIL) == "[email]"


@pytest.mark.anyio
async def test_it_is_found_where_it_is_installed() -> None:
    """R-36"""
    [found] = metadata.entry_points(group="pai", name="redaction")
    assert found.load().position == "last"
    defined = define_agent(name="a", model=ScriptedModel([f"Ask {MAIL}"]))
    result = await run_once(defined, "Hello", plugins=["redaction"])
    assert result.text == "Ask [email]"
