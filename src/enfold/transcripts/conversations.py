"""The `conversations` format: JSON Lines or an array, one conversation an item.

An item is a request body of any dialect, with an `id`, a `title` and other fields, or a bare array
of messages. Messages that name a `parent_id` form a tree; then one
without is a root. The active branch is the one that ends at the item's `tip`, or last in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from enfold import wire
from enfold.errors import DialectError
from enfold.messages import NOTHING, Message
from enfold.transcripts.source import TranscriptSource
from enfold.transcripts.transcript import Ids, Transcript, TranscriptEntry, parents_first
from enfold.wire.fields import time_in

NAME = "conversations"

MESSAGES = ("messages", "contents", "input")
"""The fields in which request bodies have their messages."""


def fits(value: Any) -> bool:
    """Return True if a record is a conversation, not a message or an event."""
    if isinstance(value, dict):
        return any(isinstance(value.get(key), list) for key in MESSAGES)
    return isinstance(value, list)


def read(source: TranscriptSource, dialect: str) -> Iterator[Transcript]:
    """Yield one transcript per record."""
    return source.parsed(lambda value: transcript_of(value, dialect, NAME))


def transcript_of(value: Any, dialect: str, name: str) -> Transcript:
    """Return the transcript of one body or array of messages; `name` is the file's format."""
    conversation = wire.parse(value, dialect)
    body = conversation.extras
    metadata = {key: field for key, field in (body or NOTHING).items() if key not in MESSAGES}
    entries = _entries(conversation.messages)
    tip = metadata.get("tip")
    if tip is None:
        tip = entries[-1].id if entries else None
    elif all(entry.id != tip for entry in entries):
        raise DialectError(f"no message has the id {tip!r}", place="tip")
    return Transcript(
        entries,
        conversation.dialect,
        id=_text(metadata, "id"),
        title=_text(metadata, "title"),
        tip=tip,
        system=conversation.system,
        tools=conversation.tools,
        format=name,
        body=body,
        extras=metadata,
    )


def _text(metadata: Mapping[str, Any], key: str) -> str:
    """Return a text field; empty for other values, which stay in `extras`."""
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


def _entries(messages: Sequence[Message]) -> tuple[TranscriptEntry, ...]:
    taken = Ids()
    given = [message.id or message.extras.get("id") for message in messages]
    ids = [taken.take(own) for own in given]
    if any("parent_id" in message.extras for message in messages):
        parents = _parents(messages, given, ids)
    else:
        parents = [None, *ids][: len(ids)]
    by_id: dict[str, TranscriptEntry] = {}
    for message, own, parent in zip(messages, ids, parents, strict=True):
        # The time that its JSON has, in any dialect.
        time = message.at or time_in(message.extras)
        dated = message if time is message.at else replace(message, at=time)
        by_id[own] = TranscriptEntry(dated, own, parent)
    return tuple(by_id[own] for own in parents_first(dict(zip(ids, parents, strict=True))))


def _parents(
    messages: Sequence[Message], given: Sequence[Any], ids: Sequence[str]
) -> list[str | None]:
    """Return each message's parent. A repeated id means the nearest message before.

    A condensed conversation lacks some messages. A message whose parent is not in the file, and one
    with neither id nor parent, such as a summary, follows the message before it.
    """
    last_ids = {name: own for name, own in zip(given, ids, strict=True) if isinstance(name, str)}
    parents: list[str | None] = []
    earlier_ids: dict[str, str] = {}
    for index, message in enumerate(messages):
        parent = message.extras.get("parent_id")
        before = ids[index - 1] if index else None
        if parent is None:
            is_nameless = "parent_id" not in message.extras and not isinstance(given[index], str)
            parents.append(before if is_nameless else None)
        elif isinstance(parent, str):
            place = earlier_ids.get(parent, last_ids.get(parent))
            parents.append(before if place is None else place)
        else:
            place = f"messages[{index}].parent_id"
            raise DialectError(f"no message has the id {parent!r}", place=place)
        if isinstance(given[index], str):
            earlier_ids[given[index]] = ids[index]
    return parents
