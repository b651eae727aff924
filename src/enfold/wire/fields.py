"""Reading a wire value's fields: each is checked once, and what is wrong is said with its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from enfold.errors import DialectError, InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import (
    NOTHING,
    Attachment,
    Message,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)

Item = TypeVar("Item")
Choice = TypeVar("Choice")

_LONGEST_CHOICE = 40
"""What is longer is not a name that was misspelt, and may be what somebody said."""


def as_object(value: Any) -> dict[str, Any]:
    """The value, which must be a JSON object."""
    if isinstance(value, dict):
        return value
    raise DialectError(f"expected an object, found {kind_of(value)}")


def as_list(value: Any) -> list[Any]:
    """The value, which must be a JSON array."""
    if isinstance(value, list):
        return value
    raise DialectError(f"expected an array, found {kind_of(value)}")


def text_field(raw: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """A text that must be there, or may be missing or null if there is a default."""
    value = raw.get(key)
    if isinstance(value, str):
        return value
    if value is None and default is not None:
        return default
    found = "nothing" if key not in raw else kind_of(value)
    raise DialectError(f"expected text, found {found}", place=key)


def object_field(raw: Mapping[str, Any], key: str) -> dict[str, Any]:
    """An object that must be there."""
    try:
        return as_object(raw.get(key))
    except DialectError as error:
        raise error.at(key) from None


def parse_field(raw: Mapping[str, Any], key: str, parse: Callable[[dict[str, Any]], Item]) -> Item:
    """An object that must be there, parsed; an error inside it names the field too."""
    try:
        return parse(as_object(raw.get(key)))
    except DialectError as error:
        raise error.at(key) from None


def flag_field(raw: Mapping[str, Any], key: str) -> bool:
    """True or false; missing and null are false."""
    value = raw.get(key)
    if value is None or isinstance(value, bool):
        return bool(value)
    raise DialectError(f"expected true or false, found {kind_of(value)}", place=key)


def arguments_field(raw: Mapping[str, Any], key: str) -> str | dict[str, Any]:
    """A call's arguments: text, an object, or empty where missing."""
    value = raw.get(key)
    return value if isinstance(value, dict) else text_field(raw, key, default="")


def choice_field(raw: Mapping[str, Any], key: str, choices: Mapping[str, Choice]) -> Choice:
    """What the field's text stands for in a table."""
    name = text_field(raw, key)
    if name in choices:
        return choices[name]
    found = repr(name) if len(name) <= _LONGEST_CHOICE else "a longer text"
    raise DialectError(f"expected one of {', '.join(choices)}; found {found}", place=key)


def each(values: Any, parse: Callable[[Any], Item], place: str) -> tuple[Item, ...]:
    """Every item of an array parsed; an error in one names its index."""
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
    """Every item of an array that may be missing or null."""
    return () if raw.get(key) is None else each(raw[key], parse, key)


def parse_content(
    content: Any, parse_block: Callable[[Any], Item], place: str = "content"
) -> tuple[Item | Text, ...]:
    """Parts of a content that is a text, an array of blocks, or missing.

    A text without a block around it has no extras: that is how `render_content` knows its shape.
    """
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if content is None:
        return ()
    return each(content, parse_block, place)


def render_content(
    parts: Iterable[Part], render_block: Callable[[Any], dict[str, Any]], before: Any, empty: Any
) -> Any:
    """The content again: one bare text as a text, blocks as an array.

    `before` is the content as it came: null, empty text and empty array mean the same, so each is
    kept where there is still nothing to say; `empty` is written where there no longer is.
    """
    kept = tuple(parts)
    if not kept:
        return empty if before else before
    match kept:
        case (Text(text, extras),) if not extras:
            return text
    return [render_block(part) for part in kept]


def put_back(raw: dict[str, Any], key: str, value: Any, *, absent: Any) -> None:
    """Write a typed field over the wire's, unless the wire left it out and it still says so."""
    if raw.get(key) is not None or value != absent:
        raw[key] = value


def put_back_list(raw: dict[str, Any], key: str, values: list[dict[str, Any]]) -> None:
    """Write an array over the wire's; one that has become empty is left out."""
    if values:
        raw[key] = values
    elif raw.get(key):
        del raw[key]


def with_defaults(extras: Mapping[str, Any], **defaults: Any) -> dict[str, Any]:
    """A new object with the wire's fields in the wire's order; what it lacks is put before them."""
    return {**{key: value for key, value in defaults.items() if key not in extras}, **extras}


def without_extras(
    message: Message, dialect: str, *, drop: tuple[type[Part], ...] = (Unknown, Reasoning)
) -> Message:
    """The message as typed fields alone, for a dialect that cannot read its extras.

    Reasoning is signed for its own provider and unknown parts have no meaning elsewhere: both stay
    behind, unless the dialect can take them.
    """
    parts = tuple(_without_extras(part) for part in message.parts if not isinstance(part, drop))
    return replace(message, parts=parts, dialect=dialect, extras=NOTHING)


def _without_extras(part: Any) -> Any:
    if isinstance(part, ToolResult):
        inner = tuple(_without_extras(p) for p in part.parts if not isinstance(p, Unknown))
        part = replace(part, parts=inner)
    return replace(part, extras=NOTHING)


def arguments_text(call: ToolCall) -> str:
    """A call's arguments as JSON text, for wires that carry text."""
    return call.arguments if isinstance(call.arguments, str) else dump_text(call.arguments)


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as an object, for wires that carry one.

    Text that is not an object's JSON is kept under the key `arguments`.
    """
    if not isinstance(call.arguments, str):
        return dict(call.arguments)
    try:
        value = loads(call.arguments or "{}")
    except InputError:
        value = call.arguments
    return value if isinstance(value, dict) else {"arguments": value}


def split_body(value: Any, key: str) -> tuple[dict[str, Any] | None, Any]:
    """A request body and its messages; a bare array has no body."""
    if isinstance(value, list):
        return None, value
    body = as_object(value)
    if key not in body:
        raise DialectError(f"expected a field {key!r}, found only {', '.join(body) or 'nothing'}")
    return body, body[key]


def file_from_base64(
    data: str, mime: str = "", name: str = "", extras: Mapping[str, Any] | None = None
) -> Attachment:
    """An attachment whose size follows from the length of its base64 text."""
    padding = len(data) - len(data.rstrip("=")) if data.endswith("=") else 0
    size = len(data) * 3 // 4 - padding
    return Attachment(name=name, mime=mime, size=size, data=data, extras=extras or NOTHING)


def file_from_url(
    url: str, mime: str = "", name: str = "", extras: Mapping[str, Any] | None = None
) -> Attachment:
    """An attachment behind an address; a `data:` address carries its content."""
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return file_from_base64(data, mime or head[5:].split(";")[0], name, extras)
    return Attachment(name=name, mime=mime, url=url, extras=extras or NOTHING)


def data_url(file: Attachment) -> str:
    """The attachment as one address, for wires that take nothing else."""
    if file.data is not None:
        return f"data:{file.mime or 'application/octet-stream'};base64,{file.data}"
    return file.url or ""


def kind_of(value: Any) -> str:
    """A value's JSON type, in words; never what it says."""
    names = {type(None): "null", bool: "a boolean", str: "text", list: "an array"}
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, int | float):
        return names.get(type(value), "a number")
    return names.get(type(value), f"a Python {type(value).__name__}")


def pair_calls(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The messages with every call's and result's id and name filled in where the wire has none.

    A call without an id is `name#n`, counted over the conversation. A result without one belongs
    to the first unanswered call of its name in the model's latest turn: providers that need no ids
    accept results for that turn only, so calls left open before it were interrupted.
    """
    pairs = _Pairs()
    return tuple(pairs.fill(message) for message in messages)


class _Pairs:
    """The calls met so far on the way through one conversation."""

    def __init__(self) -> None:
        self._numbers: Counter[str] = Counter()
        self._names: dict[str, str] = {}
        self._open: list[ToolCall] = []
        self._speaker = ""

    def fill(self, message: Message) -> Message:
        if message.role == "assistant" and self._speaker != "assistant":
            self._open = []
        self._speaker = message.role
        if not any(isinstance(part, ToolCall | ToolResult) for part in message.parts):
            return message
        return replace(message, parts=tuple(self._fill_part(part) for part in message.parts))

    def _fill_part(self, part: Part) -> Part:
        match part:
            case ToolCall():
                return self._fill_call(part)
            case ToolResult():
                return self._fill_result(part)
        return part

    def _fill_call(self, call: ToolCall) -> ToolCall:
        if not call.id:
            call = replace(call, id=self._next_id(call.name))
        self._names[call.id] = call.name
        self._open.append(call)
        return call

    def _fill_result(self, result: ToolResult) -> ToolResult:
        answered = next((call for call in self._open if _answers(result, call)), None)
        self._open = [call for call in self._open if call is not answered]
        call_id = result.call_id or (answered.id if answered else self._next_id(result.name))
        return replace(result, call_id=call_id, name=result.name or self._names.get(call_id, ""))

    def _next_id(self, name: str) -> str:
        self._numbers[name] += 1
        return f"{name}#{self._numbers[name]}"


def _answers(result: ToolResult, call: ToolCall) -> bool:
    if result.call_id:
        return result.call_id == call.id
    return result.name in ("", call.name)
