"""The shapes of a LangChain message: an object, or one of the three dicts that LangChain dumps.

| shape | as | written by |
|---|---|---|
| `object` | `HumanMessage(…)` | LangChain, LangGraph |
| `data` | `{"type": "human", "data": {…}}` | `messages_to_dict` |
| `flat` | `{"type": "human", "content": …}` | `model_dump`, LangGraph's HTTP API |
| `lc` | `{"lc": 1, "type": "constructor", "id": […], "kwargs": {…}}` | `dumpd`, `dumps` |

All hold the same fields. An object is read and changed by its own methods, so that `langchain_core`
is imported only where a new one has to be made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from enfold.dialects.fields import as_object, choice_field, kind_of, object_field, text_field
from enfold.errors import ConfigError, DialectError

_BASES = ("Human", "AI", "System", "Chat", "Function", "Tool")
CLASSES: Mapping[str, str] = {
    **{base.lower(): f"{base}Message" for base in (*_BASES, "Remove")},
    **{f"{base}MessageChunk": f"{base}MessageChunk" for base in _BASES},
}
"""The class of each message type."""

_TYPES = {name: type_ for type_, name in CLASSES.items()}
_TYPE_NAMES = {type_: type_ for type_ in CLASSES}


@dataclass(frozen=True, slots=True)
class Shape:
    """One way to hold a message's fields."""

    read: Callable[[Any], tuple[str, dict[str, Any]]]
    """The message's type and its fields."""
    change: Callable[[Any, dict[str, Any]], Any]
    """The same message with some fields changed."""
    make: Callable[[str, dict[str, Any]], Any]
    """A message of that type, from its fields."""


def is_object(value: Any) -> bool:
    """Whether the value looks like a LangChain message object."""
    return (
        isinstance(getattr(value, "type", None), str)
        and hasattr(value, "content")
        and hasattr(value, "additional_kwargs")
        and hasattr(value, "model_copy")
    )


def shape_of(raw: Any) -> str:
    """The name of the message's shape."""
    if not isinstance(raw, dict):
        if is_object(raw):
            return "object"
        raise DialectError(f"expected a LangChain message or its dict, found {kind_of(raw)}")
    if "lc" in raw:
        return "lc"
    return "data" if "data" in raw and "content" not in raw else "flat"


def _read_object(raw: Any) -> tuple[str, dict[str, Any]]:
    return choice_field({"type": raw.type}, "type", _TYPE_NAMES), dict(raw)


def _change_object(raw: Any, changes: dict[str, Any]) -> Any:
    return raw.model_copy(update=changes)


def _make_object(type_: str, fields: dict[str, Any]) -> Any:
    try:
        from langchain_core import messages
    except ImportError:
        raise ConfigError(
            "LangChain message objects need langchain-core, which is not installed; "
            "install enfold[langchain], or ask for dicts"
        ) from None
    arguments = {key: value for key, value in fields.items() if key != "type"}
    try:
        return getattr(messages, CLASSES[type_])(**arguments)
    except (ValueError, TypeError, KeyError):
        # Its validators raise all three. What they say quotes the message, so it is left out.
        raise DialectError(f"langchain-core refuses these fields in a {type_} message") from None


def _read_data(raw: Any) -> tuple[str, dict[str, Any]]:
    return choice_field(raw, "type", _TYPE_NAMES), object_field(raw, "data")


def _change_data(raw: Any, changes: dict[str, Any]) -> Any:
    return {**raw, "data": {**raw["data"], **changes}}


def _make_data(type_: str, fields: dict[str, Any]) -> Any:
    return {"type": type_, "data": fields}


def _read_flat(raw: Any) -> tuple[str, dict[str, Any]]:
    return choice_field(raw, "type", _TYPE_NAMES), as_object(raw)


def _change_flat(raw: Any, changes: dict[str, Any]) -> Any:
    return {**raw, **changes}


def _make_flat(type_: str, fields: dict[str, Any]) -> Any:
    return {**fields, "type": type_}


def _read_lc(raw: Any) -> tuple[str, dict[str, Any]]:
    if text_field(raw, "type") != "constructor":
        raise DialectError("expected a serialised object: constructor", place="type")
    fields = object_field(raw, "kwargs")
    path = raw.get("id")
    name = path[-1] if isinstance(path, list) and path else None
    if isinstance(name, str) and name in _TYPES:
        return _TYPES[name], fields
    # A subclass of somebody's own: its type still says which message it is.
    try:
        return choice_field(fields, "type", _TYPE_NAMES), fields
    except DialectError as error:
        raise error.at("kwargs") from None


def _change_lc(raw: Any, changes: dict[str, Any]) -> Any:
    return {**raw, "kwargs": {**raw["kwargs"], **changes}}


def _make_lc(type_: str, fields: dict[str, Any]) -> Any:
    path = ["langchain", "schema", "messages", CLASSES[type_]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": fields}


SHAPES: Mapping[str, Shape] = {
    "object": Shape(_read_object, _change_object, _make_object),
    "data": Shape(_read_data, _change_data, _make_data),
    "flat": Shape(_read_flat, _change_flat, _make_flat),
    "lc": Shape(_read_lc, _change_lc, _make_lc),
}
"""By name."""

FIELDS_AT: Mapping[str, str] = {"object": "", "data": "data", "flat": "", "lc": "kwargs"}
"""Where in each shape the fields are, for saying where one is wrong."""
