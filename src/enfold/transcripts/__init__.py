"""Transcripts: the conversations that a file holds.

A file may hold one request, many conversations, or the log of an agent's session; `read` detects
the format and yields every conversation, branches included. JSON Lines are read line by line, so a
large file is never held as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Protocol

from enfold.errors import ConfigError, InputError
from enfold.transcripts import archive, chatgpt, claude_code, codex, conversations, document
from enfold.transcripts.source import Origin, Record, TranscriptSource, opened
from enfold.transcripts.transcript import Problem, Transcript, TranscriptEntry, problems
from enfold.wire.fields import kind_of

__all__ = [
    "FORMATS",
    "Origin",
    "Problem",
    "Transcript",
    "TranscriptEntry",
    "problems",
    "read",
    "recognised",
    "sniff",
]


class Format(Protocol):
    """The interface of a format's module."""

    NAME: str

    def fits(self, value: Any) -> bool: ...
    def read(self, source: TranscriptSource, dialect: str) -> Iterator[Transcript]: ...


FORMATS: dict[str, Format] = {
    module.NAME: module
    for module in (archive, chatgpt, codex, claude_code, conversations, document)
}
"""All formats by name."""

_RECOGNISABLE = (archive, chatgpt, codex, claude_code, conversations)
"""Formats that a single record identifies, the most specific ones first."""

_FIXED_DIALECTS = {module.NAME: module.DIALECT for module in (chatgpt, codex, claude_code)}

_RECORDS_READ = 100
"""Records that are read to recognise a format; the first ones may fit several formats."""


def read(
    origin: Origin,
    *,
    dialect: str = "auto",
    format: str = "auto",  # noqa: A002 - the word for it everywhere else
) -> Iterator[Transcript]:
    """Yield every conversation in bytes, in the file at a path, or in a stream of bytes.

    An unreadable place raises an `InputError` that names it, after the conversations before it.
    """
    with recognised(origin, dialect=dialect, format=format) as (name, source):
        yield from FORMATS[name].read(source, dialect)


@contextmanager
def recognised(
    origin: Origin,
    *,
    dialect: str = "auto",
    format: str = "auto",  # noqa: A002 - likewise
) -> Iterator[tuple[str, TranscriptSource]]:
    """Return the name of the file's format, and its records."""
    with opened(origin) as source:
        name, whole = _recognise(source, format)
        fixed = _FIXED_DIALECTS.get(name, dialect)
        if dialect not in ("auto", fixed):
            raise ConfigError(f"a {name} file is of the dialect {fixed!r}, not {dialect!r}")
        yield name, whole


def sniff(origin: Origin) -> str:
    """Return the name of the file's format. A stream is consumed."""
    with opened(origin) as source:
        return _recognise(source, "auto")[0]


def _recognise(source: TranscriptSource, wanted: str) -> tuple[str, TranscriptSource]:
    """Return the format's name, and the source with all its records."""
    if wanted in FORMATS:
        return wanted, source
    if wanted != "auto":
        raise ConfigError(f"no format {wanted!r}; available: auto, {', '.join(FORMATS)}")
    head: list[Record] = []
    name = _first_fit(source, head)
    return name, replace(source, records=chain(head, source.records))


def _first_fit(source: TranscriptSource, head: list[Record]) -> str:
    """Return the format of the first recognisable record; put the records read into `head`."""
    first: Any = None
    for record in islice(source.records, _RECORDS_READ):
        head.append(record)
        try:
            value = record.value()
        except InputError:
            if record.is_ended:
                raise
            break
        for candidate in _RECOGNISABLE:
            if candidate.fits(value):
                is_one = source.layout == "value" and candidate is conversations
                return document.NAME if is_one else candidate.NAME
        first = value if first is None else first
    if not head or document.fits(first):
        return document.NAME
    shape = kind_of(first)
    if isinstance(first, dict):
        names = ", ".join(name[:20] for name in list(first)[:6])
        shape = f"an object of {names}" if names else "an empty object"
    raise InputError(f"none of {', '.join(FORMATS)}: it begins with {shape}", place=source.file)
