"""Logs: one line of JSON for each thing that happened, with the request's id and no secrets."""

from __future__ import annotations

import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any

from enfold.jsontext import dump_text
from enfold.server.tracing import current_request

_SECRET = re.compile(
    r"(?i)(/t/)[^/\s\"']+"
    r"|(bearer\s+|x-api-key\s*[:=]\s*|api[_-]?key\s*[:=]\s*|token\s*[:=]\s*)[^\s\"',;]+"
    r"|\b(enf_|sk-|gsk_|xai-|AIza)[\w-]{8,}"
    r"|(://[^/\s:@]*:)[^@\s/]+(?=@)"
)
_HIDDEN = "***"
_LEVELS = {
    "enfold": logging.INFO,
    "asyncio": logging.WARNING,
    "nicegui": logging.WARNING,
    "procrastinate": logging.WARNING,
    "psycopg": logging.ERROR,  # the queue says itself that the database is out of reach
    "uvicorn": logging.WARNING,
}
_FIELDS = ("method", "route", "status", "milliseconds", "caller")


def redacted(text: str) -> str:
    """The text without what looks like a key, a token or a password."""
    return _SECRET.sub(lambda match: next(filter(None, match.groups()), "") + _HIDDEN, text)


class Lines(logging.Formatter):
    """A record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line. An error's own words stay out: they might quote what somebody said."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage()),
        }
        if request_id := current_request.get():
            line["request_id"] = request_id
        line |= {name: getattr(record, name) for name in _FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return dump_text(line)


def log_to_standard_error() -> None:
    """Send the logs of enfold and of what it runs on there."""
    # No line says these, and each would be looked up for every request.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - as logging's manual says
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    for name, level in _LEVELS.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False
