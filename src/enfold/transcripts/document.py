"""The `json` format: the whole file is one conversation.

It is a request body of any dialect, an array of messages, or JSON Lines with one message per line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from enfold.transcripts import conversations
from enfold.transcripts.source import TranscriptSource, located
from enfold.transcripts.transcript import Transcript

NAME = "json"


def fits(value: Any) -> bool:
    """Return True if the first record is a message or a body, even a broken one."""
    return _is_message(value) or (
        isinstance(value, dict) and any(key in value for key in conversations.MESSAGES)
    )


def read(source: TranscriptSource, dialect: str) -> Iterator[Transcript]:
    """Yield the transcript."""
    values = [record.value() for record in source.records]
    is_body = source.layout == "value" and not _is_message(values[0])
    with located(source.file):
        transcript = conversations.transcript_of(values[0] if is_body else values, dialect, NAME)
    yield transcript


def _is_message(value: Any) -> bool:
    """Return True for an object with a role or a type."""
    return isinstance(value, dict) and ("role" in value or "type" in value)
