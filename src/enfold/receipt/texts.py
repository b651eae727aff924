"""Texts: what messages say, as far as exact items can be in it.

JSON is read, not searched: what a tool was given and what it gave back count by their values, the
names of fields do not, and a line break inside is a line break. A model's thinking is not what was
said and does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.messages import Attachment, Data, Message, Part, Text, ToolCall, ToolResult

_COMMAND_FIELDS = frozenset({"cmd", "command", "commands", "script"})
_JSON_EDGES = frozenset({("{", "}"), ("[", "]")})


def texts(messages: Iterable[Message]) -> Iterator[str]:
    """All that the messages say, piece by piece."""
    for message in messages:
        for part in message.parts:
            yield from _texts(part)


def commands_called(messages: Iterable[Message]) -> Iterator[str]:
    """What tools that run commands were told to run."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                given = _arguments(part)
                fields = given.items() if isinstance(given, Mapping) else ()
                for name, value in fields:
                    if name in _COMMAND_FIELDS:
                        yield from _strings(value)


def _texts(part: Part) -> Iterator[str]:
    match part:
        case Text(text):
            yield from _strings(_value(text))
        case ToolCall():
            yield from _strings(_arguments(part))
        case ToolResult(parts=inner):
            for each in inner:
                yield from _texts(each)
        case Data(value):
            yield from _strings(value)
        case Attachment(name=name, url=url):
            yield from filter(None, (name, url))


def _arguments(call: ToolCall) -> Any:
    return _value(call.arguments) if isinstance(call.arguments, str) else call.arguments


def _value(text: str) -> Any:
    """The value, if the text is a JSON object or array; otherwise the text."""
    bare = text.strip()
    if (bare[:1], bare[-1:]) not in _JSON_EDGES:
        return text
    try:
        return loads(bare)
    except InputError:
        return text


def _strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value; texts that are JSON are read in their turn."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            inner = _value(each) if each is not value else each
            if isinstance(inner, str):
                yield inner
            else:
                waiting.append(inner)
        elif isinstance(each, Mapping):
            waiting.extend(reversed(list(each.values())))
        elif isinstance(each, list | tuple):
            waiting.extend(reversed(each))
