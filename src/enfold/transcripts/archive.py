"""The `archive` format: a whole session as enfold exports it, each message in its dialect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from enfold import wire
from enfold.errors import DialectError
from enfold.messages import NOTHING
from enfold.transcripts.source import TranscriptSource
from enfold.transcripts.transcript import Transcript, TranscriptEntry, parents_first
from enfold.wire.fields import as_object, as_time, each, text_field

NAME = "archive"
FORMAT = "enfold-archive"
VERSION = 1


def fits(value: Any) -> bool:
    """Return True if a record is an archive."""
    return isinstance(value, dict) and value.get("format") == FORMAT


def read(source: TranscriptSource, _dialect: str) -> Iterator[Transcript]:
    """Yield one transcript per record; the dialects are in the file."""
    return source.parsed(_transcript)


def _transcript(value: Any) -> Transcript:
    raw = as_object(value)
    if raw.get("version") != VERSION:
        raise DialectError(f"version {raw.get('version')!r}: expected {VERSION}", place="version")
    entries = each(raw.get("entries"), _entry, "entries")
    by_id = {entry.id: entry for entry in entries}
    if len(by_id) < len(entries):
        raise DialectError("two messages have the same id", place="entries")
    for index, entry in enumerate(entries):
        if entry.parent_id is not None and entry.parent_id not in by_id:
            place = f"entries[{index}].parent_id"
            raise DialectError(f"no message has the id {entry.parent_id!r}", place=place)
    tip = text_field(raw, "tip", default="") or None
    if tip is not None and tip not in by_id:
        raise DialectError(f"no message has the id {tip!r}", place="tip")
    order = parents_first({entry.id: entry.parent_id for entry in entries})
    return Transcript(
        tuple(by_id[own] for own in order),
        id=text_field(raw, "id", default=""),
        title=text_field(raw, "title", default=""),
        tip=tip,
        format=NAME,
    )


def _entry(value: Any) -> TranscriptEntry:
    raw = as_object(value)
    name = text_field(raw, "dialect")
    if name not in wire.DIALECTS:
        raise DialectError(f"no dialect {name!r}", place="dialect")
    try:
        message = wire.get(name).parse_message(raw.get("message"))
    except DialectError as error:
        raise error.at("message") from None
    parent = text_field(raw, "parent_id", default="") or None
    message = replace(message, at=as_time(raw.get("at")))
    return TranscriptEntry(message, text_field(raw, "id"), parent, NOTHING)
