"""Logs: files of events that a program appends to while it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from enfold.dialects.fields import as_object
from enfold.errors import InputError
from enfold.transcripts.source import Record, Source, located


class Log:
    """The events of a log, read once, and notes of what was not made into a message."""

    def __init__(self, source: Source) -> None:
        self._records = source.records
        self._skipped: Counter[str] = Counter()
        self._truncated = ""

    def __iter__(self) -> Iterator[tuple[Record, dict[str, Any]]]:
        """Every event and where it is. A last line that is still being written is left out."""
        for record in self._records:
            try:
                value = record.value()
            except InputError:
                if record.is_ended:
                    raise
                self._truncated = record.at
                return
            with located(record.place):
                event = as_object(value)
            yield record, event

    def skip(self, kind: str) -> None:
        """Note an event that is no message."""
        self._skipped[kind] += 1

    @property
    def notes(self) -> dict[str, Any]:
        """`skipped`: how many events of each kind; `truncated`: the place of an unfinished line."""
        notes: dict[str, Any] = {}
        if self._skipped:
            notes["skipped"] = dict(self._skipped)
        if self._truncated:
            notes["truncated"] = self._truncated
        return notes
