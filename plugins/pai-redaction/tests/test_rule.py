"""What a rule may be."""

from __future__ import annotations

from typing import Any

import pytest
from pai_redaction import Rule

from pai import DefinitionError


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        ("(", "missing )"),
        ("a*", "it matches the empty text"),
        (r"(a)\1", "a backreference"),
        ("a(?=b)", "lookaround"),
        ("(?<!a)b", "lookaround"),
        ("^a", "matched anywhere"),
        ("a$", "matched anywhere"),
        ("(?>a)", "an atomic group"),
        ("a++", "a possessive repeat"),
        ("a{2000}", "repeats more than 1000"),
        (3, "expected text"),
    ],
)
def test_what_is_not_linear_or_has_no_sense_in_a_stream_is_refused(pattern: Any, told: Any) -> None:
    with pytest.raises(DefinitionError) as caught:
        Rule("r", pattern, 5000)
    assert caught.value.faults[0].path == "pattern"
    assert told in caught.value.faults[0].message


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(DefinitionError) as caught:
        Rule("no name", "(", 0, check=3)  # type: ignore[arg-type]  # the mistake
    assert [fault.path for fault in caught.value.faults] == [
        "name",
        "max_length",
        "check",
        "pattern",
    ]
    with pytest.raises(DefinitionError, match="no match is shorter than 4"):
        Rule("r", "abcd+", 3)


def test_what_re2_refuses_is_refused() -> None:
    from pai_redaction import redaction

    with pytest.raises(DefinitionError, match=r"rules\.r\.pattern: RE2: "):
        redaction(rules=[Rule("r", "(?:a{500}){500}", 1 << 20)])
