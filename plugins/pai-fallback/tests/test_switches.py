"""What switches: by class, code, status, function, or one of our words."""

from __future__ import annotations

from typing import Any

import pytest
from pai_fallback._switches import DEFAULT_ON, Switches

from pai import (
    ContextOverflow,
    IncompleteStream,
    MissingCredential,
    ModelError,
    ModelTimeout,
    RateLimited,
)


@pytest.mark.parametrize(
    ("on", "error", "goes_on"),
    [
        ([RateLimited], RateLimited("x", provider="p"), True),
        (["rate_limited"], RateLimited("x", provider="p", code="tokens"), True),
        (["rate_limited"], ContextOverflow("x", provider="p"), False),
        (["context_overflow"], ContextOverflow("x", provider="p"), True),
        (["insufficient_quota"], RateLimited("x", provider="p", code="insufficient_quota"), True),
        (["insufficient_quota"], RateLimited("x", provider="p"), False),
        ([503], ModelError("x", provider="p", status=503), True),
        ([503], ModelError("x", provider="p", status=500), False),
        (["unavailable"], ModelError("x", provider="p", status=500), True),
        (["unavailable"], ModelError("x", provider="p", code="connection_error"), True),
        (["unavailable"], ModelError("x", provider="p", status=401), False),
        ([lambda error: error.status != 401], ModelError("x", provider="p", status=400), True),
        ([lambda error: error.status != 401], ModelError("x", provider="p", status=401), False),
        (RateLimited, RateLimited("x", provider="p"), True),
        ("model_error", ModelTimeout("x", provider="p"), True),
        ([], ModelError("x", provider="p"), False),
    ],
)
def test_an_error_switches_where_it_is_named(on: Any, error: ModelError, goes_on: bool) -> None:
    assert Switches(on).takes(error) is goes_on


@pytest.mark.parametrize(
    "error",
    [
        ModelError("x", provider="p"),
        RateLimited("x", provider="p"),
        ContextOverflow("x", provider="p"),
        ModelTimeout("x", provider="p"),
        IncompleteStream("x", provider="p"),
        MissingCredential("p", "KEY"),
    ],
)
def test_a_code_of_ours_is_its_class(error: ModelError) -> None:
    other = type(error) is not RateLimited
    named = Switches(error.code)
    assert named.takes(error)
    assert named.takes(RateLimited("x", provider="p")) is (type(error) in {ModelError, RateLimited})
    assert not named.refusals
    assert Switches("rate_limited").takes(error) is not other
    assert Switches(DEFAULT_ON).takes(error)


def test_a_refusal_switches_where_it_is_named() -> None:
    assert Switches("refusal").refusals
    assert Switches(DEFAULT_ON).refusals
    assert not Switches("refusal").takes(ModelError("x", provider="p"))


def test_what_names_nothing_is_refused() -> None:
    found = Switches(["", None, True, ValueError, 3.5, "fine"]).faults  # type: ignore[list-item]  # the mistakes
    assert [fault.path for fault in found] == [f"on[{n}]" for n in range(5)]
