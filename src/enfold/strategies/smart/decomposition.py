"""Decomposition: a message as its three types of content, and put together again.

The types are what was said, what tools were called with, and what tools gave back. Everything else
a message has, attachments and unknown parts, ids and order, stays with the message. Content that
comes back as it went leaves the message as it was, to the byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import Data, Message, Part, Reasoning, ResultPart, Text, ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class Decomposed:
    """A message's content by type; None where it has none of a type."""

    message_text: str | None = None
    tool_parameters: tuple[Any, ...] | None = None
    """For each call its arguments: an object, or text that holds none."""
    tool_results: tuple[tuple[Any, ...], ...] | None = None
    """For each result its texts and JSON values."""


def decompose(message: Message) -> Decomposed:
    """The message's content by type."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    calls = [part for part in message.parts if isinstance(part, ToolCall)]
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    return Decomposed(
        "\n\n".join(texts) if texts else None,
        tuple(map(_arguments, calls)) if calls else None,
        tuple(map(_contents, results)) if results else None,
    )


def recompose(original: Message, content: Decomposed) -> Message:
    """The message with other content.

    Text that is new stands where the first text stood, in place of all texts. A message that is
    edited loses its reasoning, which is signed for the message as it was.
    """
    before = decompose(original)
    if content == before:
        return original
    keeps_texts = content.message_text == before.message_text
    parameters = iter(content.tool_parameters or ())
    results = iter(content.tool_results or ())
    parts: list[Part] = []
    said = keeps_texts
    for part in original.parts:
        match part:
            case ToolCall():
                parts.append(_with_arguments(part, next(parameters, _arguments(part))))
            case ToolResult():
                parts.append(_with_contents(part, next(results, _contents(part))))
            case Text() if not keeps_texts:
                if not said and content.message_text is not None:
                    parts.append(replace(part, text=content.message_text))
                said = True
            case Reasoning():
                continue
            case _:
                parts.append(part)
    if not said and content.message_text is not None:
        parts.insert(0, Text(content.message_text))
    return replace(original, parts=tuple(parts))


def _arguments(call: ToolCall) -> Any:
    """An object, where the arguments are one or a text that holds one."""
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        value = loads(call.arguments)
    except InputError:
        return call.arguments
    return value if isinstance(value, dict) else call.arguments


def _with_arguments(call: ToolCall, arguments: Any) -> ToolCall:
    if arguments == _arguments(call):
        return call
    is_text = isinstance(call.arguments, str) and isinstance(arguments, Mapping)
    return replace(call, arguments=dump_text(arguments) if is_text else arguments)


def _contents(result: ToolResult) -> tuple[Any, ...]:
    return tuple(_content(result.parts))


def _content(parts: tuple[ResultPart, ...]) -> Iterator[Any]:
    for part in parts:
        match part:
            case Text(text):
                yield text
            case Data(value):
                yield value


def _with_contents(result: ToolResult, contents: tuple[Any, ...]) -> ToolResult:
    if contents == _contents(result):
        return result
    new = iter(contents)
    parts: list[ResultPart] = []
    for part in result.parts:
        match part:
            case Text():
                parts.append(replace(part, text=next(new)))
            case Data():
                parts.append(replace(part, value=next(new)))
            case _:
                parts.append(part)
    return replace(result, parts=tuple(parts))
