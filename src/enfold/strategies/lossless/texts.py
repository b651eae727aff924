"""Texts: all that a view shows, text by text, with what may be done to each.

Only what tools returned is ever shortened. Everything that was said, and what calls were given, may
be pointed to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

from enfold.condensation import Task
from enfold.messages import Data, Message, Part, ResultPart, Text, ToolCall, ToolResult
from enfold.places import Path, texts_within, with_text_at

SHORTEST = 40
"""Characters from which on a text is worth pointing to: a marker takes as many."""
_MARKER = re.compile(r"⟨ [^⟩\n]*\b(?:message #\d|above)[^⟩\n]* ⟩")
_POINTS_AT = re.compile(r"⟨ [^⟩]*\bmessage #(\d+)[^⟩]* ⟩")


class Right(IntEnum):
    """What may be done to a text."""

    NOTHING = 0
    REFERENCE = 1
    """Point to others for what it repeats; all it says stays in view."""
    ANYTHING = 2
    """Also write it in another way, or take it out of view."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A text in view."""

    message: int
    text: str
    right: Right = Right.NOTHING
    part: int = 0
    inner: int = 0
    path: Path = ()
    """Inside structured output: the keys that lead to the text."""
    call: ToolCall | None = None
    """The call that it was given to, or that it answers."""
    is_result: bool = False
    """Whether a tool returned it."""
    is_error: bool = False


def texts_of(task: Task) -> list[Shown]:
    """The texts of the view, in order: all results, and of the rest what is long enough."""
    rights = _rights(task)
    calls: dict[str, ToolCall] = {}
    found: list[Shown] = []
    for index, message in enumerate(task.messages):
        for number, part in enumerate(message.parts):
            match part:
                case Text(text) if len(text) >= SHORTEST:
                    found.append(Shown(index, text, part=number))
                case ToolCall(id):
                    calls[id] = part
                    texts = texts_within(part.arguments)
                    long = (text for _, text in texts if len(text) >= SHORTEST)
                    found += (Shown(index, text, call=part) for text in long)
                case ToolResult(call_id):
                    found += _result_texts(index, number, part, calls.get(call_id), rights[index])
    return found


def has_marker(text: str) -> bool:
    """Whether a text was shortened before, or looks like it."""
    return "⟨ " in text and _MARKER.search(text) is not None


def pointed_at(texts: list[Shown], number_of: Callable[[int], int]) -> set[int]:
    """Messages that markers in the view point to already: they must stay as they are."""
    numbers = {
        int(found[1])
        for shown in texts
        if shown.is_result and "⟨ " in shown.text
        for found in _POINTS_AT.finditer(shown.text)
    }
    return {shown.message for shown in texts if number_of(shown.message) in numbers}


def with_texts(message: Message, changed: Mapping[tuple[int, int, Path], str]) -> Message:
    """The message with other texts in its results."""
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


def _rights(task: Task) -> list[Right]:
    """What may be done to the results of each message."""
    rights = [Right.REFERENCE] * len(task.messages)
    for index in task.editable:
        rights[index] = Right.ANYTHING
    for index in task.untouchable:
        rights[index] = Right.NOTHING
    for index, message in enumerate(task.messages):
        if message.role == "assistant":
            rights[index] = Right.NOTHING
    return rights


def _result_texts(
    index: int, number: int, result: ToolResult, call: ToolCall | None, right: Right
) -> Iterator[Shown]:
    for inner, content in enumerate(result.parts):
        match content:
            case Text(text):
                texts: Iterable[tuple[Path, str]] = (((), text),)
            case Data(value):
                texts = texts_within(value)
            case _:
                continue
        for path, text in texts:
            yield Shown(
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
