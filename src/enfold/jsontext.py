"""JSON text and bytes, read and written without loss.

msgspec does the work: it is as fast as the fastest and keeps integers of any size, which others
turn into floats. It refuses lone surrogates, which models and terminals do produce, so those few
texts take the standard library's way. Reading is strict: NaN, Infinity and numbers that no float
can hold are errors, because writing them back would not be JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from datetime import date
from functools import cache
from typing import Any, NoReturn, TypeAlias

import msgspec

from enfold.errors import InputError

_decode = msgspec.json.Decoder().decode
_split = msgspec.json.Decoder(list[msgspec.Raw]).decode
_split_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


def loads(text: str | bytes, *, first_line: int = 1) -> Any:
    """Return the value of a JSON text; an `InputError` names line and column.

    `first_line` is the number of the text's first line in the file that it is a part of.
    """
    try:
        return _decode(text)
    except RecursionError:
        raise InputError("nested too deeply") from None
    except (msgspec.DecodeError, UnicodeError):
        return _loads_by_standard_library(text, first_line)


def loads_or_text(text: str) -> Any:
    """Return the value of a JSON text, or the text itself if it is not JSON."""
    try:
        return loads(text)
    except InputError:
        return text


def items(array: bytes, *, first_line: int = 1) -> Iterator[bytes]:
    """Yield every item of a JSON array as JSON bytes, without decoding them."""
    try:
        raw_items = _split(array)
    except RecursionError:
        raise InputError("nested too deeply") from None
    except msgspec.DecodeError:
        yield from map(dumps, _loads_by_standard_library(array, first_line))
        return
    yield from map(bytes, raw_items)


def fields(text: bytes) -> dict[str, bytes]:
    """Return every value of a JSON object as JSON bytes, by its key."""
    try:
        raw_fields = _split_object(text)
    except RecursionError:
        raise InputError("nested too deeply") from None
    except msgspec.ValidationError:
        raise InputError("expected a JSON object") from None
    except (msgspec.DecodeError, UnicodeError):
        value = _loads_by_standard_library(text, 1)
        if not isinstance(value, dict):
            raise InputError("expected a JSON object") from None
        return {key: dumps(inner) for key, inner in value.items()}
    return {key: bytes(raw) for key, raw in raw_fields.items()}


def dumps(value: Any) -> bytes:
    """Return compact UTF-8 JSON: key order kept, non-ASCII unescaped, lone surrogates escaped."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8", "backslashreplace")
    except RecursionError:
        raise InputError("nested too deeply") from None


def dump_text(value: Any) -> str:
    """Return compact JSON as text."""
    return dumps(value).decode()


def to_json(value: Any) -> Any:
    """Return a result as values that JSON has. Every door writes its results with this.

    A dataclass becomes an object of its fields. A class attribute `JSON_FIELDS` names others:
    each entry is the name of a field or property, or `name=attribute` if JSON has another name.
    An attribute may be a path such as `usage.input_tokens`; it ends in null if a step is None. A
    class without `JSON_FIELDS` may have a method `as_json` instead.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, date):
        return value.isoformat()
    kind: type = type(value)
    if not hasattr(kind, "JSON_FIELDS") and hasattr(kind, "as_json"):
        return value.as_json()
    return {name: to_json(_attribute(value, path)) for name, path in json_fields(kind)}


def _attribute(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = None if value is None else getattr(value, name)
    return value


@cache
def json_fields(kind: type) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the JSON names of a result's class, each with the path of its attribute."""
    named: tuple[str, ...] | None = getattr(kind, "JSON_FIELDS", None)
    if named is None:
        if not is_dataclass(kind):
            raise TypeError(f"{kind.__name__} is not a result that can be written as JSON")
        return tuple((field.name, (field.name,)) for field in dataclass_fields(kind))
    pairs = (entry.partition("=") for entry in named)
    return tuple((name, tuple((attribute or name).split("."))) for name, _, attribute in pairs)


def _loads_by_standard_library(text: str | bytes, first_line: int) -> Any:
    readable = _as_text(text, first_line)
    try:
        return json.loads(readable, parse_constant=_refuse_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        place = f"line {first_line + error.lineno - 1}, column {error.colno}"
        raise InputError(f"not valid JSON: {error.msg}", place=place) from None
    except RecursionError:
        raise InputError("nested too deeply") from None
    except ValueError as error:
        raise InputError(f"not valid JSON: {error}") from None


def _as_text(text: str | bytes, first_line: int) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        line = first_line + text.count(b"\n", 0, error.start)
        raise InputError(
            f"not UTF-8: byte {text[error.start]:#04x} at offset {error.start:,}",
            place=f"line {line}",
        ) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:40]} is out of range")
    return number


Path: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a value inside another."""


def texts_within(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield every text inside a value, with its path, in order."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts_within(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from texts_within(item, (*path, index))


def text_at(value: Any, path: Path) -> str | None:
    """Return the text at the path; None if there is none."""
    try:
        for step in path:
            value = value[step]
    except (KeyError, IndexError, TypeError):
        return None
    return value if isinstance(value, str) else None


def with_text_at(value: Any, path: Path, text: str) -> Any:
    """Return a copy of the value with another text at the path."""
    if not path:
        return text
    step, *rest = path
    copied: Any = dict(value) if isinstance(value, Mapping) else list(value)
    copied[step] = with_text_at(value[step], tuple(rest), text)
    return copied
