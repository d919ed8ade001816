"""``create_pai(telemetry=)``: a plugin around every agent, left of all others, once (A-DEF-5)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai import compose_lifecycle, create_pai, define_agent, hookimpl
from pai.testing import ScriptedModel

from ..distributions import HEAD, only_site

pytestmark = pytest.mark.anyio


class Named:
    """Notes its name when a run starts."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name = name
        self.seen = seen

    @hookimpl
    def run_started(self):
        self.seen.append(self.name)


def agent(*plugins: object) -> Any:
    lifecycle = compose_lifecycle(*plugins) if plugins else None
    return define_agent(name="a", model=ScriptedModel(lambda request: "ok"), lifecycle=lifecycle)


async def run_all(agents: dict[str, Any], **options: Any) -> None:
    async with create_pai(agents=agents, **options) as app:
        for key in agents:
            await (await app.thread(key).send("go")).result()


async def test_it_stands_left_of_all_others_around_every_agent() -> None:
    seen: list[str] = []
    telemetry, given, own = (Named(name, seen) for name in ("telemetry", "given", "own"))
    agents = {"one": agent(), "two": agent(own)}
    await run_all(agents, plugins=[given], telemetry=telemetry)
    assert seen == ["telemetry", "given", "telemetry", "given", "own"]


async def test_several_may_be_composed() -> None:
    seen: list[str] = []
    telemetry = compose_lifecycle(Named("one", seen), Named("two", seen))
    await run_all({"main": agent(Named("own", seen))}, plugins=(), telemetry=telemetry)
    assert seen == ["one", "two", "own"]


async def test_the_same_object_is_there_once() -> None:
    seen: list[str] = []
    telemetry, own = Named("telemetry", seen), Named("own", seen)
    await run_all({"main": agent(own, telemetry)}, plugins=(), telemetry=telemetry)
    given = [Named("given", seen), telemetry]
    await run_all({"main": agent(own)}, plugins=given, telemetry=telemetry)
    assert seen == ["telemetry", "own", "telemetry", "given", "own"]


@pytest.mark.parametrize("name", ["otel", "other"])
async def test_it_stands_for_the_installed_one_of_its_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent's own of that name stays: somebody has chosen it."""
    seen: list[str] = []
    source = f"{HEAD}seen = []\n\n@hookimpl\ndef run_started(run):\n    seen.append('installed')\n"
    with only_site(tmp_path, monkeypatch) as site:
        site.add("pai-otel", {name: "its_plugin"}, its_plugin=source)
        await run_all({"main": agent(Named("otel", seen))}, telemetry=Named("otel", seen))
        import its_plugin  # type: ignore[import-not-found]  # made above

        assert seen == ["otel", "otel"]
        assert its_plugin.seen == ([] if name == "otel" else ["installed"])


async def test_without_it_nothing_is_added() -> None:
    seen: list[str] = []
    await run_all({"main": agent(Named("own", seen))}, plugins=(), telemetry=None)
    assert seen == ["own"]
