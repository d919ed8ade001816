"""Strict JSON: what may be stored, sent, compared and hashed, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NoReturn

from pai.errors import Fault, InvalidInput

from ._refusal import MAX_FAULTS, Found, Refusal, Way, expected

if TYPE_CHECKING:
    JsonValue = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
else:

    class _Json:
        """Marks `JsonValue`, so that the walker knows it again below any annotation."""

    # A recursive alias cannot be evaluated where its own name is not imported.
    JsonValue = Annotated[object, _Json]

JsonObject = dict[str, JsonValue]

__all__ = (
    "MAX_DEPTH",
    "SAFE_INTEGER",
    "JsonObject",
    "JsonValue",
    "canonical_json",
    "check_json",
    "check_text",
    "copy_json",
    "digest",
    "dump_json",
    "parse_json",
    "same_json",
)

MAX_DEPTH = 64
"""How many arrays and objects may lie inside one another."""

SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly."""

# Every float from here on is integral, so one bound refuses those, infinities and NaN.
_FLOAT_BOUND = 2.0**53

_NUMBER = f"expected a finite number between -{SAFE_INTEGER} and {SAFE_INTEGER}"
_DEEP = "nested too deeply"
_SURROGATE = "a lone surrogate is not text"


def check_text(text: str) -> bool:
    """Is *text* free of lone surrogates?"""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Doubled(dict[str, JsonValue]):
    """An object whose text had one key twice; the walk refuses it where it stands."""

    keys_doubled: tuple[str, ...] = ()


def _is_strict(value: object, depth: int) -> bool:
    """What `_walk` finds, without paths: nearly every value is good, and this is much quicker."""
    cls = type(value)
    if cls is str:
        return value.isascii() or check_text(value)  # type: ignore[attr-defined,arg-type]
    if value is None or cls is bool:
        return True
    if cls is int:
        return -SAFE_INTEGER <= value <= SAFE_INTEGER  # type: ignore[operator]
    if cls is float:
        return -_FLOAT_BOUND < value < _FLOAT_BOUND  # type: ignore[operator]
    if depth == 0:
        return False
    below = depth - 1
    if cls is list:
        for item in value:  # type: ignore[attr-defined]
            if not _is_strict(item, below):
                return False
        return True
    if cls is dict:
        for key, item in value.items():  # type: ignore[attr-defined]
            if type(key) is not str or not (key.isascii() or check_text(key)):
                return False
            if not _is_strict(item, below):
                return False
        return True
    return False


def _walk(value: object, way: Way, depth: int, found: list[Found]) -> None:
    if len(found) > MAX_FAULTS:
        return
    cls = type(value)
    if value is None or cls is bool:
        return
    if type(value) is str:
        if not check_text(value):
            found.append((way, _SURROGATE))
    elif type(value) is int:
        if not -SAFE_INTEGER <= value <= SAFE_INTEGER:
            found.append((way, _NUMBER))
    elif type(value) is float:
        if not -_FLOAT_BOUND < value < _FLOAT_BOUND:
            found.append((way, _NUMBER))
    elif type(value) is list:
        if depth == 0:
            found.append((way, _DEEP))
            return
        for index, item in enumerate(value):
            _walk(item, (*way, index), depth - 1, found)
    elif isinstance(value, dict) and cls in (dict, _Doubled):
        if depth == 0:
            found.append((way, _DEEP))
            return
        _walk_object(value, way, depth, found)
    else:
        found.append((way, f"{cls.__name__} is not JSON"))


def _walk_object(value: dict[object, object], way: Way, depth: int, found: list[Found]) -> None:
    if isinstance(value, _Doubled):
        found.extend(((*way, key), "the key is there twice") for key in value.keys_doubled)
    for key, item in value.items():
        if type(key) is not str:
            found.append((way, f"expected string keys, got {type(key).__name__}"))
        elif not check_text(key):
            found.append(((*way, key), _SURROGATE))
        else:
            _walk(item, (*way, key), depth - 1, found)


def check_json(value: object, *, at: str = "$", max_depth: int = MAX_DEPTH) -> tuple[Fault, ...]:
    """
    Everything that keeps *value* from being strict JSON; empty if nothing does.

    Strict are ``None``, ``bool``, ``str`` without lone surrogates, ``int`` and finite ``float``
    within ±(2**53 - 1), ``list``, and ``dict`` with ``str`` keys: exactly these classes.

    Args:
        value: Any Python object.
        at: The name of the root in the paths.
        max_depth: How many arrays and objects may lie inside one another.
    """
    if _is_strict(value, max_depth):
        return ()
    found: list[Found] = []
    _walk(value, (), max_depth, found)
    return Refusal(found).faults(at)


def _copy(value: object, depth: int) -> JsonValue:
    if type(value) is str:
        if check_text(value):
            return value
    elif value is None or type(value) is bool:
        return value
    elif type(value) is int:
        if -SAFE_INTEGER <= value <= SAFE_INTEGER:
            return value
    elif type(value) is float:
        if -_FLOAT_BOUND < value < _FLOAT_BOUND:
            return value
    elif depth > 0 and type(value) is list:
        below = depth - 1
        return [_copy(item, below) for item in value]
    elif depth > 0 and type(value) is dict:
        below = depth - 1
        result: JsonObject = {}
        for key, item in value.items():
            if type(key) is not str or not check_text(key):
                raise expected("string keys", key)
            result[key] = _copy(item, below)
        return result
    raise expected("JSON", value)


def copy_json(value: object, max_depth: int = MAX_DEPTH) -> JsonValue:
    """A copy of *value* that shares no list or dict with it; raises `Refusal` if it is not JSON."""
    try:
        return _copy(value, max_depth)
    except Refusal:
        # The quick walk knows no paths: only a value that is refused is walked a second time.
        found: list[Found] = []
        _walk(value, (), max_depth, found)
        raise Refusal(found) from None


def same_json(left: JsonValue, right: JsonValue) -> bool:
    """Are the two the same JSON? Unlike ``==``, this tells ``True`` from ``1``."""
    return left == right and _sorted_text(left) == _sorted_text(right)


def _sorted_text(value: JsonValue) -> str:
    return json.dumps(_integral(value), sort_keys=True, allow_nan=False)


def _integral(value: JsonValue) -> JsonValue:
    """JSON has one kind of number: ``1.0`` is written as ``1``."""
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is list:
        return [_integral(item) for item in value]
    if type(value) is dict:
        return {key: _integral(item) for key, item in value.items()}
    return value


def _pairs(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    doubled = _Doubled(result)
    seen: set[str] = set()
    again: dict[str, None] = {}
    for key, _ in pairs:
        if key in seen:
            again[key] = None
        seen.add(key)
    doubled.keys_doubled = tuple(again)
    return doubled


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODE = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant).decode


def _encoder() -> Callable[[object], str]:
    """
    What makes compact JSON text of a value.

    ``JSONEncoder.encode`` makes its C part anew at each call, which costs as much as a short value.
    """
    made = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return made.encode
    quote = json.encoder.encode_basestring
    write = make(None, made.default, quote, None, ":", ",", False, False, False)
    return lambda value: "".join(write(value, 0))


_ENCODE = _encoder()


def _decode(text: str | bytes) -> object:
    try:
        return _DECODE(text.decode() if isinstance(text, bytes) else text)
    except UnicodeDecodeError as error:
        raise Refusal.of(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise Refusal.of(f"not JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise Refusal.of(_DEEP) from None
    except ValueError as error:
        # A named constant, or a number with more digits than Python converts.
        text_of = str(error) if str(error).endswith("is not JSON") else _NUMBER
        raise Refusal.of(text_of) from None


def parse_json(text: str | bytes, *, max_depth: int = MAX_DEPTH) -> JsonValue:
    """
    Read strict JSON.

    Refused are NaN and infinities, also as ``1e999``, integers beyond 2**53 - 1, doubled keys,
    lone surrogates, bytes that are not UTF-8, and deep nesting.

    Args:
        text: The JSON text; bytes are read as UTF-8.
        max_depth: How many arrays and objects may lie inside one another.

    Raises:
        InvalidInput: With the path of each fault.
    """
    try:
        value = _decode(text)
    except Refusal as refusal:
        raise InvalidInput(refusal.faults("$"), subject="JSON") from None
    if faults := check_json(value, max_depth=max_depth):
        raise InvalidInput(faults, subject="JSON")
    return value  # type: ignore[return-value]


def dump_json(value: object) -> str:
    """*value* as compact JSON text; it must be strict JSON already (`check_json`)."""
    return _ENCODE(value)


def canonical_json(value: JsonValue) -> bytes:
    """
    *value* in the one spelling of RFC 8785, for what is hashed, compared or signed.

    Raises:
        InvalidInput: If *value* is not strict JSON.
    """
    if faults := check_json(value):
        raise InvalidInput(faults, subject="JSON")
    import rfc8785

    return rfc8785.dumps(value)


def digest(value: JsonValue) -> str:
    """The SHA-256 of *value*'s canonical form, in 64 hexadecimal digits."""
    import hashlib

    return hashlib.sha256(canonical_json(value)).hexdigest()
