"""Options survive suspension and resume: the application's state, the output, decisions for drivers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    Approve,
    Deny,
    ModelProfile,
    RunContext,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.protocol import event_from_json, event_to_json, fold
from pai.testing import Call, ScriptedModel

pytestmark = pytest.mark.anyio


@attrs.frozen
class Report:
    title: str


@tool(needs_approval=True)
def send(ctx, to: str) -> str:
    """Send."""
    return f"sent to {to}"


class Looks:
    def __init__(self) -> None:
        self.options: list[Any] = []

    @hookimpl
    def run_started(self, run: RunContext[Any]) -> None:
        self.options.append(dict(run.options))


SEND = Call("send", {"to": "a"}, "c1")


@pytest.mark.parametrize("state", [None, {"page": 5}, 0])
async def test_the_state_is_told_before_a_run_suspends(state: Any, tmp_path: Path) -> None:
    """O-19: None is a state; hooks see it; a resume may change it; another process goes on with it."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    looks = Looks()

    def agent(*turns: Any) -> Any:
        return define_agent(
            name="a", model=ScriptedModel(turns), tools={"send": send}, lifecycle=looks
        )

    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent([SEND])}, store=url) as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.send("go", run_id="r", options={"state": state})
            events = [event async for event in run.events()]
            assert (await run.result()).status == "suspended"
            assert fold(None, events) == await thread.state()
        async with create_pai(
            agents={"a": agent(Call("send", {"to": "b"}, "c2"), "end")}, store=url
        ) as app:
            run = await app.thread("a", thread_id="t").run("r")
            await run.resume([Approve("c1")])
            assert (await run.result()).status == "suspended"
            await run.resume([Approve("c2")], options={"state": "new"})
            assert (await run.result()).text == "end"
            events = [event async for event in run.events(after=0)]
    told = [event for event in events if event.type == "state-snapshot"]
    assert [event.value for event in told] == [state, state]
    assert event_from_json(event_to_json(told[0])) == told[0]
    types = [event.type for event in events]
    at = types.index("state-snapshot")
    assert types[at - 1 : at + 2] == [
        "tool-approval-requested", "state-snapshot", "run-suspended",
    ]  # fmt: skip
    assert [each["state"] for each in looks.options] == [state, state, "new"]


async def test_no_state_is_no_snapshot() -> None:
    """O-19: unset is not None."""
    agent = define_agent(name="a", model=ScriptedModel([[SEND]]), tools={"send": send})
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent}) as app:
            run = await app.thread("a").send("go")
            types = [event.type async for event in run.events()]
    assert types[-1] == "run-suspended"
    assert "state-snapshot" not in types


@pytest.mark.parametrize("combined", [False, True])
async def test_an_output_is_asked_for_across_a_suspension(combined, tmp_path: Path) -> None:
    """O-11: neither the wish nor the partial objects are lost."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    profile = ModelProfile(combined_output=combined)
    last = ['{"title": "T"}'] if combined else ["Sent.", '{"title": "T"}']

    def agent(*turns: Any) -> Any:
        model = ScriptedModel(turns, profile=profile, chunk=3)
        return define_agent(name="a", model=model, tools={"send": send}, outputs={"report": Report})

    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent([SEND])}, store=url) as app:
            run = await app.thread("a", thread_id="t").send(
                "go", run_id="r", options={"output": "report"}
            )
            assert [value async for value in run.partial_output()] == []
            waiting = await run.result()
            assert (waiting.status, waiting.output) == ("suspended", None)
        async with create_pai(agents={"a": agent(*last)}, store=url) as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.run("r")
            await run.resume([Approve("c1")])
            values = [value async for value in run.partial_output()]
            result = await run.result()
            assert fold(None, [e async for e in run.events(after=0)]) == await thread.state()
    assert result.output == Report("T")
    assert values[-1] == {"title": "T"}


async def test_a_driver_that_requires_something_is_told_of_decisions(tmp_path: Path) -> None:
    """O-3: payloads and edits are kept; other drivers get nothing."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    calls = [SEND, Call("send", {"to": "b"}, "c2"), Call("send", {"to": "c"}, "c3")]
    profile = ModelProfile(requires=("sandbox",))
    for harness in (True, False):
        thread_id = f"t{harness}"
        model = ScriptedModel([calls, "end"], profile=profile if harness else None)
        agent = define_agent(name="a", model=model, tools={"send": send})
        bound = {"sandbox": "box"} if harness else None
        with anyio.fail_after(20):
            async with create_pai(agents={"a": agent}, store=url, capabilities=bound) as app:
                run = await app.thread("a", thread_id=thread_id).send("go", run_id="r")
                await run.result()
                await run.resume(
                    [Approve("c1"), Deny("c2", reason="no"), Approve("c3", input={"to": "d"})]
                )
                assert (await run.result()).text == "end"
        assert dict(model.requests[0].approvals) == {}
        told = model.requests[1].approvals
        assert set(told) == ({"c1", "c2", "c3"} if harness else set())
        if harness:
            kinds = {name: answer["type"] for name, answer in told.items()}  # type: ignore[index, call-overload]  # objects
            assert kinds == {"c1": "approve", "c2": "deny", "c3": "approve"}
            assert told["c2"]["reason"] == "no"  # type: ignore[index, call-overload]  # an object
            assert told["c3"]["input"] == {"to": "d"}  # type: ignore[index, call-overload]  # an object
