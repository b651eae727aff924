"""The `conversations` format: JSON Lines or an array, one conversation an item.

An item is a request body of any dialect, with an `id`, a `title` and whatever else beside its
messages, or a bare array of messages. Messages that name a `parent_id` form a tree; then one
without is a root. The active branch is the one that ends at the item's `tip`, or last in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from enfold import wire
from enfold.errors import DialectError
from enfold.messages import NOTHING, Message
from enfold.transcripts.source import TranscriptSource, located
from enfold.transcripts.transcript import Ids, Transcript, TranscriptEntry, parents_first

NAME = "conversations"

MESSAGES = ("messages", "contents", "input")
"""Where the dialects' bodies have their messages."""


def fits(value: Any) -> bool:
    """Whether a record is a conversation rather than a message or an event."""
    if isinstance(value, dict):
        return any(isinstance(value.get(key), list) for key in MESSAGES)
    return isinstance(value, list)


def read(source: TranscriptSource, dialect: str) -> Iterator[Transcript]:
    """One transcript a record."""
    for record in source.records:
        value = record.value()
        with located(record.place):
            transcript = transcript_of(value, dialect, NAME)
        yield transcript


def transcript_of(value: Any, dialect: str, name: str) -> Transcript:
    """The transcript of one body or array of messages, in a file of the format of that name."""
    conversation = wire.parse(value, dialect)
    body = conversation.extras
    beside = {key: field for key, field in (body or NOTHING).items() if key not in MESSAGES}
    entries = _entries(conversation.messages)
    return Transcript(
        entries,
        conversation.dialect,
        id=_text(beside, "id"),
        title=_text(beside, "title"),
        tip=_tip(entries, beside),
        system=conversation.system,
        tools=conversation.tools,
        format=name,
        body=body,
        extras=beside,
    )


def _text(beside: Mapping[str, Any], key: str) -> str:
    """A name that other programs give: taken where it is text, left in `extras` where not."""
    value = beside.get(key)
    return value if isinstance(value, str) else ""


def _tip(entries: Sequence[TranscriptEntry], beside: Mapping[str, Any]) -> str | None:
    tip = beside.get("tip")
    if tip is None:
        return entries[-1].id if entries else None
    if any(entry.id == tip for entry in entries):
        return str(tip)
    raise DialectError(f"no message has the id {tip!r}", place="tip")


def _entries(messages: Sequence[Message]) -> tuple[TranscriptEntry, ...]:
    taken = Ids()
    given = [message.id or message.extras.get("id") for message in messages]
    ids = [taken.take(own) for own in given]
    if any("parent_id" in message.extras for message in messages):
        parents = _parents(messages, given, ids)
    else:
        parents = [None, *ids][: len(ids)]
    by_id = {
        own: TranscriptEntry(message, own, parent)
        for message, own, parent in zip(messages, ids, parents, strict=True)
    }
    return tuple(by_id[own] for own in parents_first(dict(zip(ids, parents, strict=True))))


def _parents(
    messages: Sequence[Message], given: Sequence[Any], ids: Sequence[str]
) -> list[str | None]:
    """Each message's parent. An id that was given twice means the nearest one before."""
    known = {name: own for name, own in zip(given, ids, strict=True) if isinstance(name, str)}
    parents: list[str | None] = []
    seen: dict[str, str] = {}
    for index, message in enumerate(messages):
        parent = message.extras.get("parent_id")
        if parent is None:
            parents.append(None)
        elif isinstance(parent, str) and parent in known:
            parents.append(seen.get(parent, known[parent]))
        else:
            place = f"messages[{index}].parent_id"
            raise DialectError(f"no message has the id {parent!r}", place=place)
        if isinstance(given[index], str):
            seen[given[index]] = ids[index]
    return parents
