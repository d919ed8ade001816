"""How long a message is, in tokens."""

from __future__ import annotations

import base64
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from pai_compaction import clear_tool_outputs, compaction, window
from pai_compaction._calibration import Calibration
from pai_compaction._clearing import Clearing
from pai_compaction._sizer import Sizer
from pai_compaction._tokenizer import Tokenizer, estimate

from pai import (
    DefinitionError,
    FilePart,
    Message,
    ModelRequest,
    OutputPart,
    SystemMessage,
    TextPart,
    ToolCallPart,
    Usage,
)
from pai.protocol import ToolSpec
from pai.testing import Finish, ScriptedModel

NOW = datetime(2030, 1, 1, tzinfo=UTC)

MODULE = """
def get_encoding(name):
    assert name == "o200k_base"
    return Encoding()

class Encoding:
    def encode_ordinary(self, text):
        assert len(text) <= 100_000
        return text.split()
"""


def message(*parts: Any, role: Any = "user") -> Message:
    return Message("m", role, parts, "r", NOW)


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("a", 1, 1),
        # 10 words of prose, 12 numbers, 10 characters of Chinese: what o200k counts, and half more.
        ("The quick brown fox jumps over the lazy dog again.", 11, 17),
        ('{"a": 1, "b": [2, 3, 4]}', 7, 20),
        ("今天天气很好我们去公园", 7, 15),
        ("\ud800", 1, 2),
    ],
)
def test_the_estimate_errs_on_the_long_side(text, least, most):
    assert least <= estimate(text) <= most


def test_a_picture_in_a_message_or_an_output_is_not_measured_by_its_bytes():
    sizer = Sizer(estimate, Clearing())
    data = base64.b64encode(bytes(300_000)).decode()
    picture = FilePart("image/png", data=data)
    made = {"type": "file", "mediaType": "image/png", "data": data}
    call = ToolCallPart("c", "draw", {}, "completed", [made, "done"])
    assert sizer.of(message(picture)).full < 2_000
    assert sizer.of(message(call, role="assistant")).full < 2_000
    # A text is.
    assert sizer.of(message(FilePart("text/plain", data=data))).full > 50_000


def test_an_output_is_measured_where_no_text_says_it():
    sizer = Sizer(estimate, Clearing())
    read, given = (OutputPart("word " * 100, in_text=in_text) for in_text in (True, False))
    nothing = sizer.of(message(role="assistant")).full
    assert sizer.of(message(read, role="assistant")).full == nothing
    assert sizer.of(message(given, role="assistant")).full >= nothing + estimate("word " * 100)


def test_what_stands_around_the_messages_is_counted():
    sizer = Sizer(estimate, Clearing())
    spec = ToolSpec("look", "word " * 100, {"type": "object"})
    request = ModelRequest(
        "m", (), (SystemMessage("word " * 100),), (spec,), output={"description": "word " * 100}
    )
    assert 3 * estimate("word " * 100) <= sizer.around(request) <= 3 * estimate("word " * 120)
    assert sizer.around(ModelRequest("m", ())) == 0


def test_a_message_is_measured_once():
    asked = []

    def count(text: str) -> int:
        asked.append(text)
        return 1

    sizer = Sizer(count, Clearing())
    one = message(TextPart("once"))
    assert sizer.of(one) is sizer.of(one)
    assert asked == ["once"]


def test_outputs_that_are_shorter_than_the_placeholder_stay():
    clearing = clear_tool_outputs(exclude={"keep"}).clearing
    sizer = Sizer(estimate, clearing)
    short = message(ToolCallPart("c", "look", {}, "completed", "ok"), role="assistant")
    kept = message(ToolCallPart("c", "keep", {}, "completed", "x" * 999), role="assistant")
    failed = message(ToolCallPart("c", "look", {}, "failed", error="x" * 999), role="assistant")
    for each in (short, kept, failed):
        assert sizer.of(each).cleared == sizer.of(each).full
        assert clearing.clear(each, sizer.output) is each


@pytest.fixture
def encoder(tmp_path, monkeypatch):
    """Give the extra's module, as one that counts words."""
    (tmp_path / "bpe_openai.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bpe_openai", raising=False)
    yield
    sys.modules.pop("bpe_openai", None)


def test_exact_counts_are_loaded_at_first_use(encoder):
    tokenizer = Tokenizer("o200k_base")
    assert not tokenizer.loaded
    assert "bpe_openai" not in sys.modules
    assert tokenizer("one two three") == 3
    assert tokenizer.loaded
    # The encoder refuses a text of a million characters.
    assert tokenizer("word " * 300_000) == 300_000


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "bpe_openai", None)
    monkeypatch.setattr("pai_compaction._tokenizer.find_spec", lambda name: None)
    with pytest.raises(DefinitionError, match=r"pip install 'pai-compaction\[tokens\]'"):
        compaction(tokenizer="o200k_base")


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_the_extra_itself(encoding):
    pytest.importorskip("bpe_openai")
    tokenizer = Tokenizer(encoding)
    assert tokenizer("The quick brown fox jumps over the lazy dog.") == 10
    assert tokenizer("<|endoftext|>") > 1
    assert tokenizer("\ud800") >= 1


@pytest.mark.anyio
async def test_a_run_with_exact_counts(encoder):
    model = ScriptedModel(lambda request: Finish("stop"))
    plugin = compaction(100, strategies=[window()], tokenizer="o200k_base")
    history = [Message(f"m{n}", "user", (TextPart("word " * 30),), "r", NOW) for n in range(50)]
    request = ModelRequest(model, tuple(history))
    run = SimpleNamespace(id="r", emit=lambda name, value: None)
    async for _ in plugin.wrap_model_call(
        SimpleNamespace(run=run, request=request), lambda asked: asked.model.stream(asked), {}, None
    ):
        pass
    # 30 words and 4 for the message; the target is 50.
    assert len(model.requests[0].messages) == 1


def test_a_provider_that_reports_too_little_is_not_believed():
    calibration = Calibration()
    assert not calibration.learn("m", 1_000, None)
    assert not calibration.learn("m", 1_000, Usage())
    assert not calibration.learn("m", 1_000, Usage(200, 1, 201))
    assert calibration.tokens("m", 1_000) == 1_000


def test_the_last_request_is_counted_as_the_provider_counted_it():
    calibration = Calibration()
    assert calibration.learn("m", 1_000, Usage(1_500, 9, 1_509))
    assert calibration.tokens("m", 1_000) == 1_500
    assert calibration.tokens("m", 1_200) == 1_800
    assert calibration.tokens("other", 1_000) == 1_000
    assert calibration.size("m", 1_800) == 1_200
    stored = calibration.to_json()
    # What has hardly moved is not worth a write.
    assert not calibration.learn("m", 1_000, Usage(1_550, 9, 1_559))
    assert calibration.tokens("m", 1_000) == 1_550
    assert Calibration.from_json(stored).tokens("m", 1_000) == 1_500
    assert Calibration.from_json({"m": "much", "n": 0}).to_json() == {}
