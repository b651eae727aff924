"""Server-sent events: cut out of a stream of bytes, wherever its chunks begin and end."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from enfold.errors import InputError
from enfold.jsontext import dumps, loads

_BLANK = re.compile(rb"\r?\n\r?\n|\r\r")
"""The end of an event."""
_LONGEST_BLANK = 4


@dataclass(frozen=True, slots=True)
class Event:
    """One event, and the bytes that it came with."""

    raw: bytes
    """To its end, the blank line included."""

    @property
    def data(self) -> bytes:
        """What it says; empty for a comment."""
        lines = self.raw.splitlines()
        said = [line[5:].removeprefix(b" ") for line in lines if line.startswith(b"data:")]
        return said[0] if len(said) == 1 else b"\n".join(said)

    def json(self) -> dict[str, Any] | None:
        """What it says, where that is a JSON object."""
        data = self.data
        if not data.startswith(b"{"):
            return None
        try:
            found = loads(data)
        except InputError:
            return None
        return found if isinstance(found, dict) else None

    def with_json(self, value: Any) -> Event:
        """The same kind of event that says something else."""
        names = [line for line in self.raw.splitlines() if line.startswith(b"event:")]
        return Event(b"\n".join([*names, b"data: " + dumps(value), b"", b""]))


class Events:
    """Takes chunks, gives events."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that are whole with this chunk."""
        start, look = 0, max(0, len(self._rest) - _LONGEST_BLANK)
        self._rest += chunk
        found: list[Event] = []
        for blank in _BLANK.finditer(self._rest, look):
            found.append(Event(bytes(self._rest[start : blank.end()])))
            start = blank.end()
        if start:
            self._rest = self._rest[start:]
        return found

    def end(self) -> list[Event]:
        """The last event, where a stream ends without a blank line."""
        last = [Event(bytes(self._rest))] if self._rest else []
        self._rest = bytearray()
        return last
