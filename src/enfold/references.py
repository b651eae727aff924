"""References: whether all that shortened texts leave out is in view, so that it can be put back.

A shortened text holds as long as its sources are shown as they were when it was made. Whoever
changes a view after that asks `unresolved` which messages no longer hold, and puts those back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, TypeAlias

from enfold.errors import RestoreError
from enfold.messages import Data, Message, Text, ToolCall, ToolResult
from enfold.places import texts_within
from enfold.recipes import Shortening

_Pairs: TypeAlias = set[tuple[str, str]]
"""Texts that were shortened, and what is shown in their place."""


def unresolved(
    shown: Mapping[int, Message], edits: Mapping[int, Sequence[Shortening]]
) -> dict[int, str]:
    """Edited messages that cannot be restored from what is shown, each with the reason.

    Both are by the index that messages had before any of them was edited or left out.
    """

    @cache
    def texts(index: int) -> frozenset[str]:
        return frozenset(texts_in(shown[index])) if index in shown else frozenset()

    faults: dict[int, str] = {}
    for index, shortenings in edits.items():
        for each in shortenings:
            away = [s.message for s in each.sources if s.text not in texts(s.message)]
            fault = (
                f"points to message {away[0]}, which does not show what it did"
                if away
                else _fault(each)
            )
            if fault:
                faults[index] = fault
                break
    return faults


def explains(before: Message, after: Message, shortenings: Sequence[Shortening]) -> bool:
    """Whether two messages differ in nothing but shortened texts of tool results."""
    pairs = {(each.original, each.shown) for each in shortenings}
    if replace(after, parts=()) != replace(before, parts=()):
        return False
    return len(before.parts) == len(after.parts) and all(
        was == now or (isinstance(was, ToolResult) and _is_shortened(was, now, pairs))
        for was, now in zip(before.parts, after.parts, strict=True)
    )


def texts_in(message: Message) -> Iterator[str]:
    """Every text that a message shows: what is said, and what tools were given and returned."""
    for part in message.parts:
        match part:
            case Text(text):
                yield text
            case ToolCall(arguments=arguments):
                yield from (text for _, text in texts_within(arguments))
            case ToolResult(parts=inner):
                for each in inner:
                    if isinstance(each, Text):
                        yield each.text
                    elif isinstance(each, Data):
                        yield from (text for _, text in texts_within(each.value))


def _fault(shortening: Shortening) -> str:
    try:
        return "" if shortening.restore() == shortening.original else "restores something else"
    except RestoreError as error:
        return f"cannot be restored: {error}"


def _is_shortened(was: ToolResult, now: Any, pairs: _Pairs) -> bool:
    if not isinstance(now, ToolResult) or replace(now, parts=()) != replace(was, parts=()):
        return False
    return len(was.parts) == len(now.parts) and all(
        old == new or _is_shortened_content(old, new, pairs)
        for old, new in zip(was.parts, now.parts, strict=True)
    )


def _is_shortened_content(was: Any, now: Any, pairs: _Pairs) -> bool:
    match was, now:
        case Text(old), Text(new):
            return (old, new) in pairs and replace(now, text=old) == was
        case Data(old), Data(new):
            return _is_shortened_value(old, new, pairs) and replace(now, value=old) == was
    return False


def _is_shortened_value(old: Any, new: Any, pairs: _Pairs) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return old == new or (old, new) in pairs
    if isinstance(old, Mapping) and isinstance(new, Mapping) and list(old) == list(new):
        return all(_is_shortened_value(old[key], new[key], pairs) for key in old)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return all(_is_shortened_value(a, b, pairs) for a, b in zip(old, new, strict=True))
    return type(old) is type(new) and bool(old == new)
