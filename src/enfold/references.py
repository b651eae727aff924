"""References: whether all that shortened texts leave out is in view, so that it can be put back.

A shortened text holds as long as its sources are shown as they were when it was made. Whoever
changes a view after that asks `unresolved` which messages no longer hold, and puts those back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from enfold.errors import RestoreError
from enfold.messages import Data, Message, Text, ToolCall, ToolResult
from enfold.recipes import Shortening


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
            if away:
                faults[index] = f"points to message {away[0]}, which no longer shows what it did"
                break
            fault = _fault(each)
            if fault:
                faults[index] = fault
                break
    return faults


def explains(before: Message, after: Message, shortenings: Sequence[Shortening]) -> bool:
    """Whether two messages differ in nothing but shortened texts of tool results."""
    pairs = {(each.original, each.shown) for each in shortenings}
    known = {type(before): (before.role, before.id, before.name, before.dialect)}
    if known != {type(after): (after.role, after.id, after.name, after.dialect)}:
        return False
    if len(before.parts) != len(after.parts) or before.extras is not after.extras:
        return False
    return all(
        was is now or (isinstance(was, ToolResult) and _is_shortened(was, now, pairs))
        for was, now in zip(before.parts, after.parts, strict=True)
    )


def texts_in(message: Message) -> Iterator[str]:
    """Every text that a message shows: what is said, and what tools were given and returned."""
    for part in message.parts:
        match part:
            case Text(text):
                yield text
            case ToolCall(arguments=arguments):
                yield from _leaves(arguments)
            case ToolResult(parts=inner):
                for each in inner:
                    if isinstance(each, Text):
                        yield each.text
                    elif isinstance(each, Data):
                        yield from _leaves(each.value)


def _fault(shortening: Shortening) -> str:
    try:
        return "" if shortening.restore() == shortening.original else "restores something else"
    except RestoreError as error:
        return f"cannot be restored: {error}"


def _is_shortened(was: ToolResult, now: Any, pairs: set[tuple[str, str]]) -> bool:
    if not isinstance(now, ToolResult) or len(was.parts) != len(now.parts):
        return False
    if (was.call_id, was.is_error, was.name) != (now.call_id, now.is_error, now.name):
        return False
    return was.extras is now.extras and all(
        old is new or _is_shortened_content(old, new, pairs)
        for old, new in zip(was.parts, now.parts, strict=True)
    )


def _is_shortened_content(was: Any, now: Any, pairs: set[tuple[str, str]]) -> bool:
    match was, now:
        case Text(old, extras), Text(new, same):
            return extras is same and (old, new) in pairs
        case Data(old, extras), Data(new, same):
            return extras is same and _is_shortened_value(old, new, pairs)
    return bool(was == now)


def _is_shortened_value(old: Any, new: Any, pairs: set[tuple[str, str]]) -> bool:
    if old is new or (isinstance(old, str) and isinstance(new, str) and (old, new) in pairs):
        return True
    if isinstance(old, Mapping) and isinstance(new, Mapping) and list(old) == list(new):
        return all(_is_shortened_value(old[key], new[key], pairs) for key in old)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return all(_is_shortened_value(a, b, pairs) for a, b in zip(old, new, strict=True))
    return type(old) is type(new) and bool(old == new)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
