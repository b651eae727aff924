"""Cache marks: those that fell away with folded messages are set again, where it is stable.

A provider caches a request up to every mark. Clients mark messages that a view no longer shows, so
what stands in their place would never be cached. One mark at the end of what stays the same on
every turn covers all that stands before it. No request has more marks than it came with, and one
that came with none has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from enfold.jsontext import dumps, loads
from enfold.server.proxy.bodies import Body
from enfold.summaries import HEADING

MOST = 4
"""Providers refuse a request with more."""

_KEY = "cache_control"
_IN_JSON = b'"cache_control"'
_BESIDE = ("system", "tools")
_CARRIERS = {
    "anthropic": frozenset({"text", "image", "document", "tool_use", "tool_result"}),
    "openai": frozenset({"text"}),
}
"""The blocks that a mark may stand on, by dialect. Reasoning is never among them."""


def set_again(
    body: Body, *, lead: Sequence[bytes], covered: int, sent: Sequence[bytes], view: Sequence[bytes]
) -> list[bytes]:
    """The view with a mark in place of those that fell away.

    `sent` are the messages that came after the system messages, `lead`; of these the snapshot
    covers the first ones, and the view ends in the others.
    """
    if body.form.dialect not in _CARRIERS or _IN_JSON not in body.raw:
        return list(view)
    stable = len(view) - (len(sent) - covered)
    came = list(_found(sent[:covered]))
    if len(came) == len(list(_found(view[:stable]))):
        return list(view)
    beside = {"content": [body.value(name) for name in _BESIDE], _KEY: body.value(_KEY)}
    if len([*_found((*lead, *view)), *_in_value(beside)]) >= MOST:
        return list(view)
    # Longer-lived marks must come first: the last one that came is right for the end.
    return _with_mark(view, stable, came[-1], body.form.dialect)


def without(raw: bytes) -> bytes:
    """A message without the marks that it was recorded with."""
    return dumps(_unmarked(loads(raw))) if _IN_JSON in raw else raw


def _found(raws: Iterable[bytes]) -> Iterator[Any]:
    for raw in raws:
        if _IN_JSON in raw:
            yield from _in_value(loads(raw))


def _in_value(value: Any) -> Iterator[Any]:
    """The marks on a message, a block or a tool, and on what is inside it, in order."""
    if isinstance(value, list):
        for item in value:
            yield from _in_value(item)
    elif isinstance(value, dict):
        yield from _in_value(value.get("content"))
        yield from _in_value(value.get("function"))
        if value.get(_KEY) is not None:
            yield value[_KEY]


def _unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if not isinstance(value, dict):
        return value
    inside = {"content": _unmarked(value["content"])} if "content" in value else {}
    return {key: inner for key, inner in {**value, **inside}.items() if key != _KEY}


def _with_mark(view: Sequence[bytes], stable: int, mark: Any, dialect: str) -> list[bytes]:
    """The mark on the last block before the end that can carry one."""
    marked = list(view)
    for index in range(min(stable, len(view) - 1), -1, -1):
        message = loads(view[index])
        blocks = _blocks(message)
        if index == stable:
            # Nothing here is stable, unless the summary stands in it.
            blocks = blocks[: _summary_end(blocks)]
        for place in range(len(blocks) - 1, -1, -1):
            if _can_carry(blocks[place], dialect):
                if _KEY not in blocks[place]:
                    content = _blocks(message)
                    content[place] = {**content[place], _KEY: mark}
                    marked[index] = dumps({**message, "content": content})
                return marked
    return marked


def _blocks(message: Any) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, list) else []


def _summary_end(blocks: Sequence[Any]) -> int:
    """The place after the summary; 0 where there is none."""
    ends = (i + 1 for i, block in enumerate(blocks) if _text(block).startswith(HEADING))
    return next(ends, 0)


def _can_carry(block: Any, dialect: str) -> bool:
    if not isinstance(block, dict) or block.get("type") not in _CARRIERS[dialect]:
        return False
    return block["type"] != "text" or bool(_text(block).strip())


def _text(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) else None
    return text if isinstance(text, str) else ""
