"""Readers and writers for the fields of JSON values; an error names the field and its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from enfold.errors import DialectError, InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import NOTHING, Attachment, Part, Text, ToolCall

Item = TypeVar("Item")
Choice = TypeVar("Choice")

_LONGEST_CHOICE = 40
"""Longer values are not misspelt names, and may be a user's text, so errors do not repeat them."""


TIME_FIELDS = ("at", "ts", "timestamp", "created_at", "createdAt", "create_time", "time", "date")
"""Names under which messages in files have their time."""
_TIME_NAMES = frozenset(TIME_FIELDS)

_FIRST_EPOCH, _LAST_EPOCH = 1e8, 1e11
"""Seconds since 1970 from 1973 to 5138. Smaller numbers are durations or indexes."""


def time_in(raw: Mapping[str, Any]) -> datetime | None:
    """Return the time of a message from the first of `TIME_FIELDS` that holds one."""
    if _TIME_NAMES.isdisjoint(raw):  # nearly always, so this must be fast
        return None
    return next((time for key in TIME_FIELDS if (time := as_time(raw.get(key)))), None)


def as_time(value: Any) -> datetime | None:
    """Return the time that an ISO text or a number since 1970 gives; None for other values.

    Numbers are seconds, milliseconds, microseconds or nanoseconds. A time without a zone is UTC.
    """
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for unit in (1, 1e3, 1e6, 1e9):
        if _FIRST_EPOCH <= value / unit < _LAST_EPOCH:
            return datetime.fromtimestamp(value / unit, UTC)
    return None


def as_object(value: Any) -> dict[str, Any]:
    """Return the value, which must be a JSON object."""
    if isinstance(value, dict):
        return value
    raise DialectError(f"expected an object, found {kind_of(value)}")


def text_field(raw: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """Return a text field; the default, if there is one, where it is missing or null."""
    value = raw.get(key)
    if isinstance(value, str):
        return value
    if value is None and default is not None:
        return default
    found = "nothing" if key not in raw else kind_of(value)
    raise DialectError(f"expected text, found {found}", place=key)


def optional_text(raw: Mapping[str, Any], key: str) -> str | None:
    """Return a text field; None where it is missing or null."""
    return None if raw.get(key) is None else text_field(raw, key)


def object_field(raw: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a required object field."""
    try:
        return as_object(raw.get(key))
    except DialectError as error:
        raise error.at(key) from None


def parse_field(raw: Mapping[str, Any], key: str, parse: Callable[[dict[str, Any]], Item]) -> Item:
    """Parse a required object field; an error inside it names the field."""
    try:
        return parse(as_object(raw.get(key)))
    except DialectError as error:
        raise error.at(key) from None


def flag_field(raw: Mapping[str, Any], key: str) -> bool:
    """Return a boolean field; False where it is missing or null."""
    value = raw.get(key)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise DialectError(f"expected true or false, found {kind_of(value)}", place=key)


def arguments_field(raw: Mapping[str, Any], key: str) -> str | dict[str, Any]:
    """Return a call's arguments: text or an object; an empty text where they are missing."""
    value = raw.get(key)
    return value if isinstance(value, dict) else text_field(raw, key, default="")


def choice_field(raw: Mapping[str, Any], key: str, choices: Mapping[str, Choice]) -> Choice:
    """Return the table's value for a text field."""
    name = text_field(raw, key)
    if name in choices:
        return choices[name]
    found = repr(name) if len(name) <= _LONGEST_CHOICE else "a longer text"
    raise DialectError(f"expected one of {', '.join(choices)}; found {found}", place=key)


def each(values: Any, parse: Callable[[Any], Item], place: str) -> tuple[Item, ...]:
    """Parse every item of an array; an error names the item's index."""
    if not isinstance(values, list):
        raise DialectError(f"expected an array, found {kind_of(values)}", place=place)
    items: list[Item] = []
    for index, value in enumerate(values):
        try:
            items.append(parse(value))
        except DialectError as error:
            raise error.at(f"{place}[{index}]") from None
    return tuple(items)


def list_field(raw: Mapping[str, Any], key: str, parse: Callable[[Any], Item]) -> tuple[Item, ...]:
    """Parse every item of an array field; none where it is missing or null."""
    return () if raw.get(key) is None else each(raw[key], parse, key)


def parse_content(
    content: Any, parse_block: Callable[[Any], Item], place: str = "content"
) -> tuple[Item | Text, ...]:
    """Return the parts of a content: a text, an array of blocks, or nothing.

    A bare text becomes a part without extras, so that `render_content` can restore its form.
    """
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if content is None:
        return ()
    return each(content, parse_block, place)


def render_content(
    parts: Iterable[Part], render_block: Callable[[Any], dict[str, Any]], before: Any, empty: Any
) -> Any:
    """Return a content: a single bare text as text, other parts as an array of blocks.

    `before` is the content as it was parsed. Null, an empty text and an empty array mean the same,
    so an empty content stays as it was. One that becomes empty is written as `empty`.
    """
    kept = tuple(parts)
    if not kept:
        return empty if before else before
    match kept:
        case (Text(text, extras),) if not extras:
            return text
    return [render_block(part) for part in kept]


def put_back(raw: dict[str, Any], *, absent: Any, **values: Any) -> None:
    """Write typed values into their fields, except a value `absent` of a field that was missing."""
    for key, value in values.items():
        if raw.get(key) is not None or value != absent:
            raw[key] = value


def put_back_list(raw: dict[str, Any], key: str, values: list[dict[str, Any]]) -> None:
    """Write an array into its field; remove the field if the array has become empty."""
    if values:
        raw[key] = values
    elif raw.get(key):
        del raw[key]


def with_defaults(extras: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """Return a new object with the fields in their order, after the defaults that it lacks."""
    return {**{key: value for key, value in defaults.items() if key not in extras}, **extras}


def arguments_text(call: ToolCall) -> str:
    """Return a call's arguments as JSON text."""
    return call.arguments if isinstance(call.arguments, str) else dump_text(call.arguments)


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """Return a call's arguments as an object.

    Text that is not the JSON of an object is kept under the key `arguments`.
    """
    if not isinstance(call.arguments, str):
        return dict(call.arguments)
    try:
        value = loads(call.arguments or "{}")
    except InputError:
        value = call.arguments
    return value if isinstance(value, dict) else {"arguments": value}


def split_body(value: Any, key: str) -> tuple[dict[str, Any] | None, Any]:
    """Return a request body and its messages; None as the body of a bare array."""
    if isinstance(value, list):
        return None, value
    body = as_object(value)
    if key not in body:
        raise DialectError(f"expected a field {key!r}, found only {', '.join(body) or 'nothing'}")
    return body, body[key]


def file_from_base64(
    data: str, mime: str = "", name: str = "", extras: Mapping[str, Any] | None = None
) -> Attachment:
    """Return an attachment; its size follows from the length of the base64 text."""
    padding = len(data) - len(data.rstrip("=")) if data.endswith("=") else 0
    size = len(data) * 3 // 4 - padding
    return Attachment(name=name, mime=mime, size=size, data=data, extras=extras or NOTHING)


def file_from_url(
    url: str, mime: str = "", name: str = "", extras: Mapping[str, Any] | None = None
) -> Attachment:
    """Return an attachment with an address; the content of a `data:` address is taken out."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return file_from_base64(data, mime or head[5:].split(";")[0], name, extras)
    return Attachment(name=name, mime=mime, url=url, extras=extras or NOTHING)


def data_url(file: Attachment) -> str:
    """Return the attachment as one address."""
    if file.data is not None:
        return f"data:{file.mime or 'application/octet-stream'};base64,{file.data}"
    return file.url or ""


def kind_of(value: Any) -> str:
    """Return the name of a value's JSON type, for error messages."""
    names = {type(None): "null", bool: "a boolean", str: "text", list: "an array"}
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, int | float):
        return names.get(type(value), "a number")
    return names.get(type(value), f"a Python {type(value).__name__}")
