"""Names of models."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai.errors import DefinitionError, PluginError
from pai.models import OpenAIChat, OpenAIResponses, resolve_model
from pai.models._demo import DemoDriver
from pai.models._resolve import GROUP, _by_name
from pai.ports import ModelDriver


@pytest.mark.parametrize(
    ("name", "cls", "model"),
    [
        ("openai:gpt-5.2", OpenAIResponses, "gpt-5.2"),
        ("openai-chat:llama3:8b", OpenAIChat, "llama3:8b"),
        ("demo", DemoDriver, "demo"),
    ],
)
def test_built_in(name: str, cls: type, model: str) -> None:
    driver = resolve_model(name)
    assert type(driver) is cls
    assert driver.name == model
    assert resolve_model(name) is driver, "its connections are shared"
    assert resolve_model(driver) is driver


@pytest.mark.parametrize(
    "name", ["", ":", "openai", "openai:", "openai: ", ":m", " demo", "demo:x", "demo:"]
)
def test_bad_names(name: str) -> None:
    with pytest.raises(DefinitionError):
        resolve_model(name)


def test_no_driver() -> None:
    with pytest.raises(DefinitionError, match="got int"):
        resolve_model(3)  # type: ignore[arg-type]


def test_unknown_provider() -> None:
    with pytest.raises(DefinitionError) as caught:
        resolve_model("anthropic:x")
    assert "demo, openai, openai-chat" in str(caught.value)
    with pytest.raises(DefinitionError, match="pai-smollm"):
        resolve_model("smollm:135m")


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed distribution with three providers, one of them broken."""
    (tmp_path / "strange_models.py").write_text(
        textwrap.dedent(
            """
            from pai.models import OpenAIChat

            def from_name(model):
                return OpenAIChat(model or "default", base_url="http://localhost:1/v1")

            def no_driver(model):
                return model
            """
        )
    )
    (tmp_path / "broken_models.py").write_text("import no_such_module_anywhere\n")
    info = tmp_path / "strange_models-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-models\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\n"
        "strange = strange_models:from_name\n"
        "odd = strange_models:no_driver\n"
        "broken = broken_models:from_name\n"
        "openai = strange_models:from_name\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    from stevedore import _cache
    from stevedore.extension import ExtensionManager

    monkeypatch.setattr(_cache, "_c", _cache.Cache(cache_dir=str(tmp_path / "cache")))
    ExtensionManager.ENTRY_POINT_CACHE.clear()
    _by_name.cache_clear()
    yield
    ExtensionManager.ENTRY_POINT_CACHE.clear()
    _by_name.cache_clear()
    sys.modules.pop("strange_models", None)


@pytest.mark.usefixtures("distribution")
def test_installed() -> None:
    assert resolve_model("strange:a:b").name == "a:b"
    assert resolve_model("strange").name == "default"
    assert isinstance(resolve_model("openai:m"), OpenAIResponses), "nobody takes our names"
    with pytest.raises(DefinitionError, match="made no model driver"):
        resolve_model("odd:x")
    with pytest.raises(DefinitionError, match="broken, demo, odd, openai, openai-chat, strange"):
        resolve_model("none:x")
    with pytest.raises(PluginError) as caught:
        resolve_model("broken:x")
    assert caught.value.plugin == "broken"
    assert caught.value.distribution == "strange-models"
    assert isinstance(caught.value.__cause__, ImportError)


def test_drivers_are_drivers() -> None:
    assert isinstance(resolve_model("demo"), ModelDriver)
