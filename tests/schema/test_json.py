"""Strict and canonical JSON."""

from __future__ import annotations

import json

import pytest
import rfc8785
from hypothesis import given, strategies as st

from pai.errors import Fault, InvalidInput
from pai.schema import canonical_json, check_json, digest, dump_json, parse_json
from pai.testing._schema_strategies import json_values, mutated

BIG = 2**53

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(max_size=3)
    | st.sets(st.integers(), max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(st.characters(), max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


def paths(faults: tuple[Fault, ...]) -> list[str]:
    return [fault.path for fault in faults]


@given(json_values())
def test_what_is_strict_json_survives_the_wire(value):
    assert check_json(value) == ()
    assert parse_json(dump_json(value)) == value
    assert parse_json(dump_json(value).encode()) == value


@given(anything)
def test_whatever_is_called_strict_can_be_written_read_and_hashed(value):
    if check_json(value):
        with pytest.raises(InvalidInput):
            canonical_json(value)
    else:
        again = parse_json(dump_json(value))
        assert canonical_json(again) == canonical_json(value)


@given(json_values())
def test_the_canonical_form_does_not_depend_on_order_nor_on_how_often_it_was_made(value):
    turned = json.loads(json.dumps(value), object_pairs_hook=lambda p: dict(reversed(p)))
    assert digest(value) == digest(turned)
    assert canonical_json(json.loads(canonical_json(value))) == canonical_json(value)
    assert canonical_json(value) == rfc8785.dumps(value)


@given(st.data())
def test_different_values_have_different_digests(data):
    value = data.draw(json_values())
    other = data.draw(mutated(value))
    same = canonical_json(value) == canonical_json(other)
    assert (digest(value) == digest(other)) is same


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("NaN", "$"),
        ("-Infinity", "$"),
        ("[1, 1e999]", "$[1]"),
        (f'{{"a": {BIG}}}', "$.a"),
        (f'{{"a": -{BIG}}}', "$.a"),
        ('{"a": 1e17}', "$.a"),
        ("9" * 5000, "$"),
        ('"\\ud800"', "$"),
        ('{"\\udc00": 1}', '$["\\udc00"]'),
        ('{"a": {"b": 1, "b": 1}}', "$.a.b"),
        ("[1,]", "$"),
        ("", "$"),
        ("\ufeff1", "$"),
        (b'"\xff"', "$"),
        ('"a"'.encode("utf-16"), "$"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_its_path(text, path):
    with pytest.raises(InvalidInput) as caught:
        parse_json(text)
    assert paths(caught.value.faults) == [path.replace('"', "'") if "udc00" in path else path]


def test_all_faults_are_told_at_once():
    with pytest.raises(InvalidInput) as caught:
        parse_json('{"a": 1e999, "b": ["\\ud800", {"c": 1, "c": 2}], "d e": 9007199254740992}')
    assert paths(caught.value.faults) == ["$.a", "$.b[0]", "$.b[1].c", "$['d e']"]


def test_the_number_of_faults_told_is_bounded():
    faults = check_json([b""] * 10_000)
    assert len(faults) == 101
    assert "more than 100" in faults[-1].message


def test_the_largest_integers_are_taken():
    assert parse_json(f"[{BIG - 1}, -{BIG - 1}]") == [BIG - 1, 1 - BIG]


def test_nesting_is_limited():
    assert parse_json("[" * 64 + "]" * 64)
    for depth in (65, 100_000):
        with pytest.raises(InvalidInput, match="nested too deeply"):
            parse_json("[" * depth + "]" * depth)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        parse_json('{"a": [1]}', max_depth=1)
    endless: list[object] = []
    endless.append(endless)
    assert check_json(endless)


@pytest.mark.parametrize("value", [(1,), {1}, b"x", {1: 2}, object(), {"a": (1,)}, float("nan")])
def test_python_objects_are_not_json(value):
    assert check_json(value)


def test_an_error_does_not_repeat_the_text():
    with pytest.raises(InvalidInput) as caught:
        parse_json('{"token": "secret-key')
    assert "secret" not in str(caught.value)


def test_many_doubled_keys_do_not_take_long():
    text = "{" + ",".join(f'"{i}":1,"{i}":2' for i in range(50_000)) + "}"
    with pytest.raises(InvalidInput):
        parse_json(text)
