"""A structured output holds nothing of what redaction finds (O-11)."""

from __future__ import annotations

from pathlib import Path

import anyio
import attrs
import pytest

from pai import OutputPart, create_pai, define_agent
from pai.protocol import encode_events
from pai.testing import ScriptedModel

pai_redaction = pytest.importorskip("pai_redaction")

ADDRESS = "joe.marker@example.com"


@attrs.frozen
class Contact:
    mail: str


@pytest.mark.anyio
@pytest.mark.parametrize("first", ["no JSON: " + ADDRESS, None])
async def test_an_output_is_redacted_everywhere(first: str | None, tmp_path: Path) -> None:
    """In the object, while it is written, in the store, and in the call that repairs."""
    good = f'{{"mail": "{ADDRESS}"}}'
    model = ScriptedModel([good] if first is None else [first, good], chunk=3)
    agent = define_agent(
        name="a",
        model=model,
        outputs={"contact": Contact},
        lifecycle=pai_redaction.redaction(),
    )
    file = tmp_path / "pai.db"
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent}, store=f"sqlite:///{file}") as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.send("go", options={"output": "contact"})
            values = [value async for value in run.partial_output()]
            result = await run.result()
            events = [event async for event in run.events()]
            state = await thread.state()
    assert result.output == Contact("[email]")
    assert state.messages[-1].parts[-1] == OutputPart({"mail": "[email]"}, "contact")
    seen = f"{values} {encode_events(events)} {state} {model.requests[-1].messages}"
    assert ADDRESS not in seen
    stored = await anyio.to_thread.run_sync(
        lambda: b"".join([each.read_bytes() for each in tmp_path.glob("pai.db*")])
    )
    assert ADDRESS.encode() not in stored
