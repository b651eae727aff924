"""Texts: everything that a view shows, text by text, with the edits that are allowed on each.

Only what tools returned is shortened. Messages and the arguments of calls may be pointed to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from enfold.condensation import Plan
from enfold.jsontext import Path, texts_within, with_text_at
from enfold.messages import Data, Message, Part, ResultPart, Text, ToolCall, ToolResult
from enfold.strategies.lossless.units import SHORTEST


class EditRight(IntEnum):
    """The edits that are allowed on a text."""

    NOTHING = 0
    REFERENCE = 1
    """Point to others for what it repeats; all it says stays in view."""
    ANYTHING = 2
    """Also write it in another way, or take it out of view."""


@dataclass(frozen=True, slots=True)
class ResultText:
    """A text in view."""

    message: int
    text: str
    right: EditRight = EditRight.NOTHING
    part: int = 0
    inner: int = 0
    path: Path = ()
    """Inside structured output: the keys that lead to the text."""
    call: ToolCall | None = None
    """The call that it was given to, or that it answers."""
    is_result: bool = False
    """True if a tool returned it."""
    is_error: bool = False


def texts_of(plan: Plan) -> list[ResultText]:
    """Return the texts of a view, in order: all results, and of the rest what is long enough."""
    return texts_of_messages(plan.messages, _rights(plan))


def has_editable_results(plan: Plan) -> bool:
    """Return True if a message whose results may be edited has one."""
    return any(
        isinstance(part, ToolResult)
        for message, right in zip(plan.messages, _rights(plan), strict=True)
        if right is not EditRight.NOTHING
        for part in message.parts
    )


def texts_of_messages(
    messages: Sequence[Message], rights: Sequence[EditRight] | None = None
) -> list[ResultText]:
    """Return the texts of messages, in order; without `rights` none of them may be edited."""
    calls: dict[str, ToolCall] = {}
    found: list[ResultText] = []
    for index, message in enumerate(messages):
        right = EditRight.NOTHING if rights is None else rights[index]
        for number, part in enumerate(message.parts):
            match part:
                case Text(text) if len(text) >= SHORTEST:
                    found.append(ResultText(index, text, part=number))
                case ToolCall(id):
                    calls[id] = part
                    texts = texts_within(part.arguments)
                    long = (text for _, text in texts if len(text) >= SHORTEST)
                    found += (ResultText(index, text, call=part) for text in long)
                case ToolResult(call_id):
                    found += _result_texts(index, number, part, calls.get(call_id), right)
    return found


def result_texts(message: Message) -> Iterator[str]:
    """Yield what tools returned in a message."""
    for part in message.parts:
        if isinstance(part, ToolResult):
            yield from (each.text for each in _result_texts(0, 0, part, None, EditRight.NOTHING))


def with_texts(message: Message, changed: Mapping[tuple[int, int, Path], str]) -> Message:
    """Return the message with other texts in its results."""
    parts: list[Part] = list(message.parts)
    for (number, inner, path), text in changed.items():
        parts[number] = _with_text(parts[number], inner, path, text)
    return replace(message, parts=tuple(parts))


def _with_text(part: Part, inner: int, path: Path, text: str) -> Part:
    if not isinstance(part, ToolResult):
        return part
    contents: list[ResultPart] = list(part.parts)
    content = contents[inner]
    match content:
        case Text():
            contents[inner] = replace(content, text=text)
        case Data(value):
            contents[inner] = replace(content, value=with_text_at(value, path, text))
    return replace(part, parts=tuple(contents))


def _rights(plan: Plan) -> list[EditRight]:
    """Return the edits that are allowed on the results of each message."""
    rights = [EditRight.REFERENCE] * len(plan.messages)
    for index in plan.editable:
        rights[index] = EditRight.ANYTHING
    for index in plan.protected:
        rights[index] = EditRight.NOTHING
    for index, message in enumerate(plan.messages):
        if message.role == "assistant":
            rights[index] = EditRight.NOTHING
    return rights


def _result_texts(
    index: int, number: int, result: ToolResult, call: ToolCall | None, right: EditRight
) -> Iterator[ResultText]:
    for inner, content in enumerate(result.parts):
        match content:
            case Text(text):
                texts: Iterable[tuple[Path, str]] = (((), text),)
            case Data(value):
                texts = texts_within(value)
            case _:
                continue
        for path, text in texts:
            yield ResultText(
                index,
                text,
                right,
                number,
                inner,
                path,
                call,
                is_result=True,
                is_error=result.is_error,
            )
