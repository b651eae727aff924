"""Cache marks: the `cache_control` fields with which clients mark prefixes to cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from enfold.jsontext import dumps, loads
from enfold.wire.contract import FieldReader, Wire

MAX_MARKS = 4
"""Providers refuse a request with more."""
_KEY = "cache_control"
_KEY_IN_JSON = b'"cache_control"'


def has_cache_marks(raw: bytes) -> bool:
    """Return True if a body or message may have cache marks."""
    return _KEY_IN_JSON in raw


def restore_cache_marks(
    wire: Wire,
    field: FieldReader,
    *,
    lead: Sequence[bytes],
    covered: int,
    sent: Sequence[bytes],
    view: Sequence[bytes],
    summary_heading: str,
) -> list[bytes]:
    """Return the view with one cache mark for those on messages that were summarized.

    `lead` are the system messages at the beginning, `sent` the messages after them. A snapshot
    covers the first `covered` of `sent`; the others are the end of `view`.
    """
    if not wire.cache_mark_blocks:
        return list(view)
    stable = len(view) - (len(sent) - covered)
    before = list(_marks_in(sent[:covered]))
    if len(before) <= len(list(_marks_in(view[:stable]))):
        return list(view)
    overhead = {"content": [field("system"), field("tools")], _KEY: field(_KEY)}
    if len([*_marks_in((*lead, *view)), *_marks_of(overhead)]) >= MAX_MARKS:
        return list(view)
    # Marks with a longer lifetime must come first, so the last one is right for the end.
    return _add_mark(view, stable, before[-1], wire.cache_mark_blocks, summary_heading)


def remove_cache_marks(raw: bytes) -> bytes:
    """Return the message without its cache marks."""
    return dumps(_without_marks(loads(raw))) if has_cache_marks(raw) else raw


def _marks_in(messages: Iterable[bytes]) -> Iterator[Any]:
    for raw in messages:
        if has_cache_marks(raw):
            yield from _marks_of(loads(raw))


def _marks_of(value: Any) -> Iterator[Any]:
    """Yield the marks on a message, block or tool and on its content, in order."""
    if isinstance(value, list):
        for item in value:
            yield from _marks_of(item)
    elif isinstance(value, dict):
        yield from _marks_of(value.get("content"))
        yield from _marks_of(value.get("function"))
        if value.get(_KEY) is not None:
            yield value[_KEY]


def _without_marks(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_marks(item) for item in value]
    if not isinstance(value, dict):
        return value
    content = {"content": _without_marks(value["content"])} if "content" in value else {}
    return {key: inner for key, inner in {**value, **content}.items() if key != _KEY}


def _add_mark(
    view: Sequence[bytes], stable: int, mark: Any, carriers: frozenset[str], heading: str
) -> list[bytes]:
    """Put the mark on the last block of the stable part that can carry one."""
    marked = list(view)
    for index in range(min(stable, len(view) - 1), -1, -1):
        message = loads(view[index])
        blocks = _blocks(message)
        candidates = blocks
        if index == stable:
            # This message is new. Its beginning is stable only if it holds the summary.
            candidates = blocks[: _summary_end(blocks, heading)]
        for position in range(len(candidates) - 1, -1, -1):
            if _can_carry(blocks[position], carriers):
                if _KEY not in blocks[position]:
                    blocks[position] = {**blocks[position], _KEY: mark}
                    marked[index] = dumps({**message, "content": blocks})
                return marked
    return marked


def _blocks(message: Any) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, list) else []


def _summary_end(blocks: Sequence[Any], heading: str) -> int:
    """Return the position after the summary; 0 if there is none."""
    ends = (i + 1 for i, block in enumerate(blocks) if _text(block).startswith(heading))
    return next(ends, 0)


def _can_carry(block: Any, carriers: frozenset[str]) -> bool:
    if not isinstance(block, dict) or block.get("type") not in carriers:
        return False
    return block["type"] != "text" or bool(_text(block).strip())


def _text(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""
