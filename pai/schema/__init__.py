"""
The boundary: what comes in is checked here, and what goes out is written here.

A schema is a type: an attrs class, or a plain type such as ``dict[str, int]``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._function import FunctionSchema, function_schema
from ._json import (
    JsonObject,
    JsonValue,
    canonical_json,
    check_json,
    digest,
    dump_json,
    parse_json,
    same_json,
)
from ._metadata import (
    check_metadata_class,
    fitted,
    guarded,
    initial,
    merge_patch,
    parse_stable,
)
from ._schema import Schema, ValueSchema, compile_schema
from ._unset import UNSET, Unset

if TYPE_CHECKING:
    from ._client import ClientSchema, compile_client_schema
    from ._convert import converted
    from ._nulls import undo_nulls
    from ._partial import PartialJson
    from ._strict_form import strict_form

__all__ = (
    "UNSET",
    "ClientSchema",
    "FunctionSchema",
    "JsonObject",
    "JsonValue",
    "PartialJson",
    "Schema",
    "Unset",
    "ValueSchema",
    "canonical_json",
    "check_json",
    "check_metadata_class",
    "compile_client_schema",
    "compile_schema",
    "converted",
    "digest",
    "dump_json",
    "fitted",
    "function_schema",
    "guarded",
    "initial",
    "merge_patch",
    "parse_json",
    "parse_stable",
    "same_json",
    "strict_form",
    "undo_nulls",
)

# Declaring an agent needs none of these: they are loaded when a model is first asked.
_LAZY = {
    "ClientSchema": "._client",
    "PartialJson": "._partial",
    "compile_client_schema": "._client",
    "converted": "._convert",
    "strict_form": "._strict_form",
    "undo_nulls": "._nulls",
}


def __getattr__(name: str) -> object:
    file = _LAZY.get(name)
    if file is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(file, __name__), name)
    globals()[name] = value
    return value
