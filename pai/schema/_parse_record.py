"""Records from JSON: dicts, and attrs classes by way of a function that cattrs generates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import attrs

from ._dump import Dump, compile_dump, converter
from ._refusal import Found, Refusal, expected, said
from ._shapes import Field, Record

__all__ = ("Parse", "apply_converter", "class_record", "dict_record", "validate_field")

Parse: TypeAlias = Callable[..., object]
"""Takes the value; the second argument is cattrs's way of naming the type and is not read."""


def _unknown(names: set[object]) -> list[Found]:
    return [((str(name),), "unknown key") for name in sorted(names, key=str)]


def dict_record(record: Record, hooks: dict[str, Parse]) -> Parse:
    plan = [(field.key, field.required, hooks[field.key]) for field in record.fields.values()]
    known = hooks.keys()

    def parse(value: object, _: object = None) -> object:
        if type(value) is not dict:
            raise expected("object", value)
        result: dict[str, object] = {}
        found: list[Found] = []
        for key, required, hook in plan:
            if key in value:
                try:
                    result[key] = hook(value[key])
                except Refusal as refusal:
                    found += refusal.below(key)
            elif required:
                found.append(((key,), "required"))
        if not value.keys() <= known:
            found += _unknown(set(value) - known)
        if found:
            raise Refusal(found)
        return result

    return parse


def class_record(record: Record, cls: type, hooks: dict[str, Parse]) -> Parse:
    from cattrs.errors import (
        AttributeValidationNote,
        ClassValidationError,
        ForbiddenExtraKeysError,
    )
    from cattrs.gen import make_dict_structure_fn_from_attrs, override

    fields = {field.name: field for field in record.fields.values()}
    # The class is built by cattrs from hooks alone: without types it has nothing to resolve, and
    # type variables are bound in the shapes already.
    overrides: dict[str, Any] = {
        name: override(rename=field.key, struct_hook=hooks[field.key])
        for name, field in fields.items()
    }
    build: Parse = make_dict_structure_fn_from_attrs(
        [
            field.attribute.evolve(type=None)
            for field in fields.values()
            if field.attribute is not None
        ],
        cls,
        converter(),
        {variable.__name__: object for variable in getattr(cls, "__parameters__", ())},
        _cattrs_forbid_extra_keys=True,
        _cattrs_detailed_validation=True,
        _cattrs_prefer_attrib_converters=False,
        **overrides,
    )
    dump: list[Dump] = []

    def explain(value: dict[str, object], group: ClassValidationError) -> list[Found]:
        found: list[Found] = []
        wrong: set[str] = set()
        for error in group.exceptions:
            notes = getattr(error, "__notes__", ())
            note = next((n for n in notes if isinstance(n, AttributeValidationNote)), None)
            if isinstance(error, ForbiddenExtraKeysError):
                found += _unknown(set(error.extra_fields))
            elif note is None:
                return _init_faults(cls, fields.values(), hooks, value) or [((), said(error))]
            else:
                key = fields[note.name].key
                wrong.add(key)
                if isinstance(error, Refusal):
                    found += error.below(key)
                else:
                    found.append(((key,), "required" if key not in value else said(error)))
        # __init__ was not reached; what is understood of its validators can be said all the same.
        for field in fields.values():
            if field.checks and field.key in value and field.key not in wrong:
                made = hooks[field.key](value[field.key])
                failed = [check.message for check in field.checks if not check.passes(made)]
                found += (((field.key,), message) for message in failed)
        return found

    def parse(value: object, _: object = None) -> object:
        if type(value) is dict:
            try:
                return build(value, cls)
            except ClassValidationError as error:
                group = error
            raise Refusal(explain(value, group)) from None
        if isinstance(value, cls):
            if not dump:
                dump.append(compile_dump(record))
            return parse(dump[0](value))
        raise expected("object", value)

    return parse


def _init_faults(
    cls: type, fields: Iterable[Field], hooks: dict[str, Parse], value: dict[str, object]
) -> list[Found]:
    """
    Which fields do converters and validators refuse?

    They run inside ``__init__``, which stops at the first and does not say where. So when it did
    raise, and only then, they are run once more, field by field.
    """
    found: list[Found] = []
    try:
        draft: object = object.__new__(cls)
    except TypeError:
        return found
    drafted: list[tuple[Field, object]] = []
    for field in fields:
        try:
            made = _convert_field(draft, field, hooks[field.key], value)
            object.__setattr__(draft, field.name, made)
        except Exception as refused:
            found.append(((field.key,), said(refused)))
        else:
            drafted.append((field, made))
    for field, made in drafted:
        found += (((field.key,), message) for message in validate_field(draft, field, made))
    return found


def _convert_field(draft: object, field: Field, hook: Parse, value: dict[str, object]) -> object:
    """What ``__init__`` would set *field* to, before validators run."""
    attribute = field.attribute
    assert attribute is not None
    if field.key in value:
        made = hook(value[field.key])
    elif isinstance(attribute.default, attrs.Factory):  # type: ignore[arg-type]
        factory = attribute.default
        made = factory.factory(draft) if factory.takes_self else factory.factory()  # type: ignore[attr-defined]
    else:
        made = attribute.default
    return apply_converter(draft, field, made)


def apply_converter(draft: object, field: Field, made: object) -> object:
    """*made* after the converter of *field*, if it has one."""
    attribute = field.attribute
    convert: Any = getattr(attribute, "converter", None)
    if convert is None:
        return made
    arguments = (made, draft, attribute) if isinstance(convert, attrs.Converter) else (made,)
    result: object = convert(*arguments)
    return result


def validate_field(draft: object, field: Field, made: object) -> list[str]:
    """What the validators of *field* say about *made*, without repeating its value."""
    attribute = field.attribute
    if attribute is None or attribute.validator is None:
        return []
    failed = [check.message for check in field.checks if not check.passes(made)]
    if failed:
        return failed
    try:
        attribute.validator(draft, attribute, made)
    except Exception as error:
        return [said(error)]
    return []
