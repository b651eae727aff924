"""The request log: an id, a log line and metrics for every request, and the audit log.

`Tracing` is the outermost layer. It answers uncaught errors: the caller gets the request's id, the
log gets the type of the error and the line of code. Neither contains text of a conversation.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from random import Random
from time import perf_counter, time
from typing import Any, TextIO

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.engine import Engine
from enfold.errors import EnfoldError
from enfold.events import CompressionFinished, Event
from enfold.jsontext import dump_text
from enfold.records import AuditDraft
from enfold.server.access import Caller, first_headers, name_in
from enfold.server.connections import WHOLE_ANSWER
from enfold.server.failures import error_response, internal_error, request_id
from enfold.server.metrics import Metrics
from enfold.text.secrets import hide_in_log

HEADER = b"x-request-id"
current_request: ContextVar[str] = ContextVar("current_request", default="")
"""The id of the current request, for the log."""

_NOT_ALLOWED = 1008
"""The close code of a refused WebSocket; a browser sees 403."""
_LOGGED_HEADERS = {b"x-enfold-session": "session", b"x-enfold-decision": "decision"}
"""Headers of a response that the log line repeats."""
_STARTS = frozenset({"http.response.start", WHOLE_ANSWER})
"""Messages that have the status and the headers of an answer."""
_SAFE_ID = re.compile(rb"[\w.:-]{1,64}", re.ASCII)
_REQUEST = "request"
"""The message of the log line of a request."""
_log = logging.getLogger("enfold.server")
_all_logs = logging.getLogger("enfold")


compression_cause: ContextVar[str] = ContextVar("compression_cause", default="")
"""The reason of the current compression, for the log; empty for the usual ones."""


def log_decision(
    decision: str, session: str | None, tokens_before: int, tokens_after: int | None, cause: str
) -> None:
    """Write the log line of a compression or of a blocked request."""
    fields = {
        "session": session,
        "decision": decision,
        "tokens_before": tokens_before,
        "tokens_after": tokens_after,
        "cause": cause,
    }
    _log.log(logging.WARNING if decision == "blocked" else logging.INFO, decision, extra=fields)


def log_compression(event: Event) -> None:
    """Write the log line of a compression that has finished."""
    if isinstance(event, CompressionFinished):
        usual = "due" if event.automatic else "requested"
        cause = compression_cause.get() or usual
        log_decision("compressed", event.session, event.tokens_before, event.tokens_after, cause)


class Tracing:
    """Gives every request an id, logs it and counts it."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        # The ids are not secret, and a number of the system for each takes longer.
        self._random = Random()  # noqa: S311

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        request = _Request(scope, send, self._new_id)
        token = current_request.set(request.id)
        self._metrics.started()
        try:
            await self._answer(request, receive)
        finally:
            route, seconds = route_of(scope), request.seconds
            self._metrics.ended(scope["method"], route, request.status, seconds)
            if _log.isEnabledFor(logging.INFO):
                request.log(route, seconds)
            current_request.reset(token)

    def _new_id(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    async def _socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Open a WebSocket of the web UI, or close it if it is refused."""
        try:
            await self._app(scope, receive, send)
        except EnfoldError:
            await send({"type": "websocket.close", "code": _NOT_ALLOWED})

    async def _answer(self, request: _Request, receive: Receive) -> None:
        """Answer errors. After the start of an answer an error only closes the connection."""
        try:
            await self._app(request.scope, receive, request.send)
        except EnfoldError as error:
            if not request.status:
                await error_response(error, request.scope)(request.scope, receive, request.send)
        except Exception as error:  # noqa: BLE001 - the outermost layer answers and logs it
            _log.error("unexpected error: %s", _without_text(error))
            if not request.status:
                await internal_error(request.scope)(request.scope, receive, request.send)


class _Request:
    """A request in progress."""

    def __init__(self, scope: Scope, send: Send, new_id: Callable[[], str]) -> None:
        self.scope = scope
        self._send = send
        self._begin = perf_counter()
        self.status = 0
        """The status of the answer; 0 until it starts."""
        self._proxied: dict[str, str] = {}
        """Session and decision of a proxied request."""
        given = first_headers(scope).get(HEADER)
        self.id = given.decode() if given and _SAFE_ID.fullmatch(given) else new_id()
        scope["state"]["request_id"] = self.id

    @property
    def seconds(self) -> float:
        """The seconds since the request arrived."""
        return perf_counter() - self._begin

    async def send(self, message: Message) -> None:
        """Send a part of the answer; the id goes into its headers."""
        if message["type"] in _STARTS:
            self.status = message["status"]
            headers = list(message["headers"])
            by_name = dict(headers)
            for name, field in _LOGGED_HEADERS.items():
                if (value := by_name.get(name)) is not None:
                    self._proxied[field] = value.decode("latin-1")
            if HEADER in by_name:
                headers = [each for each in headers if each[0] != HEADER]
            headers.append((HEADER, self.id.encode()))
            message = {**message, "headers": headers}
        await self._send(message)

    def log(self, route: str, seconds: float) -> None:
        """Write the log line."""
        caller: Caller | None = self.scope["state"].get("caller")
        # Every request writes such a line, and a log record takes longer than the rest of it.
        direct = _direct_handler()
        fields = {} if direct is None else _line(time(), "info", _log.name, _REQUEST)
        fields["method"] = self.scope["method"]
        fields["route"] = route
        fields["status"] = self.status or None
        fields["milliseconds"] = round(seconds * 1000, 2)
        fields["caller"] = caller.name if caller is not None else None
        if self._proxied:
            fields |= self._proxied
        if direct is None:
            _log.info(_REQUEST, extra=fields)
        else:
            direct.write_line(fields)


def _direct_handler() -> _StandardError | None:
    """Return the handler that writes lines without a record, if it is the only one."""
    handlers = _log.handlers or _all_logs.handlers
    first = handlers[0] if len(handlers) == 1 else None
    return first if isinstance(first, _StandardError) else None


def route_of(scope: Scope) -> str:
    """Return the pattern of the request's route. It contains no text of the caller."""
    state = scope.get("state", {})
    found = state.get("route") or getattr(scope.get("route"), "path", None)
    return str(found or "other")


def _without_text(error: Exception) -> str:
    """Return the type and place of an error. Its message might quote a conversation."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else "?"
    return f"{type(error).__name__} at {place}"


_LEVELS = {
    "enfold": logging.INFO,
    "asyncio": logging.WARNING,
    "nicegui": logging.WARNING,
    "procrastinate": logging.WARNING,
    "psycopg": logging.ERROR,  # the queue logs itself that the database is unreachable
    "uvicorn": logging.WARNING,
}
_FIELDS = (
    "method",
    "route",
    "status",
    "milliseconds",
    "caller",
    "session",
    "decision",
    "tokens_before",
    "tokens_after",
    "cause",
)


def _line(at: float, level: str, logger: str, message: str) -> dict[str, Any]:
    """Return the first fields of a line, with the id of the current request."""
    line = {
        "at": f"{_second_of(int(at))}.{int(at % 1 * 1000):03}+00:00",
        "level": level,
        "logger": logger,
        "message": message,
    }
    if request_id := current_request.get():
        line["request_id"] = request_id
    return line


@lru_cache(maxsize=2)
def _second_of(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes log records, and the lines of requests without a record."""

    def write_line(self, line: dict[str, Any]) -> None:
        """Write a line of JSON."""
        try:
            self.stream.write(f"{dump_text(line)}\n")
            self.stream.flush()
        except (OSError, ValueError):
            return  # nobody reads it, or it is closed


class JsonLines(logging.Formatter):
    """Writes a log record as a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without the message of an error: it might quote a conversation."""
        level, message = record.levelname.lower(), hide_in_log(record.getMessage())
        line = _line(record.created, level, record.name, message)
        values = vars(record)
        line |= {name: values[name] for name in _FIELDS if name in values}
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return dump_text(line)


class _PlainLines(logging.Formatter):
    """Log lines for a person at a terminal: level and text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        if record.exc_info and record.exc_info[0] is not None:
            return (
                f"{record.levelname.lower()}: {record.getMessage()} ({record.exc_info[0].__name__})"
            )
        return f"{record.levelname.lower()}: {record.getMessage()}"


def log_to_standard_error(*, quiet: bool = False) -> None:
    """Send the logs of enfold and its libraries to standard error, as JSON Lines.

    With `quiet` only warnings and errors are written, as plain text.
    """
    # No line contains these, and logging would look them up for every request.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    logging._srcfile = None  # noqa: SLF001 - as the documentation of logging recommends
    handler = _StandardError(sys.stderr)
    handler.setFormatter(_PlainLines() if quiet else JsonLines())
    for name, level in _LEVELS.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(max(level, logging.WARNING) if quiet else level)
        logger.propagate = False


_READING = frozenset({"GET", "HEAD", "OPTIONS"})


class Audit:
    """Writes every request that may change data to the audit log."""

    def __init__(self, app: ASGIApp, engine: Engine) -> None:
        self._app = app
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] in _READING:
            await self._app(scope, receive, send)
            return
        is_written = False

        async def write_first(message: Message) -> None:
            """Write the entry before the answer starts: no change is acknowledged without one."""
            nonlocal is_written
            if message["type"] == "http.response.start" and route_of(scope) != "other":
                await self._write(scope, message["status"])
                is_written = True
            await send(message)

        try:
            await self._app(scope, receive, write_first)
        finally:
            if not is_written and route_of(scope) != "other":
                await self._write(scope, 0)

    async def _write(self, scope: Scope, status: int) -> None:
        caller: Caller = scope["state"]["caller"]
        named = scope.get("path_params", {}).get("session")
        entry = AuditDraft(
            actor=caller.name,
            namespace=caller.namespace,
            action=f"{scope['method']} {route_of(scope)}",
            status=status,
            request_id=request_id(scope),
            session=None if named is None else name_in(named),
            counts=scope["state"].get("counts", {}),
        )
        await self._engine.access.log(entry)
