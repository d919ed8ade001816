"""The converter, the JSON Schema and the canonical form agree, whatever the type and the value."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
from hypothesis import given, strategies as st

from pai.schema import (
    check_json,
    compile_client_schema,
    compile_schema,
    dump_json,
    parse_json,
    parse_stable,
)
from pai.testing._schema_strategies import json_values, mutated, schema_types, values_for


@st.composite
def typed_values(draw: st.DrawFn) -> tuple[Any, Any]:
    tp = draw(schema_types())
    return tp, draw(values_for(tp))


@given(typed_values(), st.data())
def test_the_converter_and_the_json_schema_take_the_same_values(typed, data):
    tp, value = typed
    schema = compile_schema(tp)
    valid = jsonschema_rs.validator_for(schema.json_schema, validate_formats=True).is_valid
    assert schema.faults(value) == ()
    assert valid(value)
    other = data.draw(mutated(value))
    assert (schema.faults(other) == ()) is valid(other)
    any_value = data.draw(json_values())
    assert (schema.faults(any_value) == ()) is valid(any_value)


@given(typed_values())
def test_the_json_schema_is_one_a_client_may_send(typed):
    tp, value = typed
    compiled = compile_client_schema(compile_schema(tp).json_schema)
    assert compiled.faults(value) == ()


@given(typed_values())
def test_what_is_dumped_is_strict_canonical_and_stable(typed):
    """A-META-2, A-UI-2."""
    tp, value = typed
    schema = compile_schema(tp)
    before = copy.deepcopy(value)
    dumped = schema.dump(schema.parse(value))
    assert value == before
    assert check_json(dumped) == ()
    assert parse_json(dump_json(dumped)) == dumped
    assert dump_json(schema.dump(schema.parse(dumped))) == dump_json(dumped)
    assert parse_stable(schema, value) == dumped
    assert parse_stable(schema, schema.parse(value)) == dumped


@given(typed_values(), st.data())
def test_a_refused_value_has_faults_inside_it(typed, data):
    tp, value = typed
    schema = compile_schema(tp)
    for fault in schema.faults(data.draw(mutated(value))):
        assert fault.path.startswith("$")
        assert fault.message
