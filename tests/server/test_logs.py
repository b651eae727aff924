"""Logs: a line of JSON each, and no secret in it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from starlette.responses import PlainTextResponse

from enfold.server.metrics import Metrics
from enfold.server.request_log import JsonLines, Tracing, current_request, log_to_standard_error
from enfold.text.secrets import hide_in_log


@pytest.mark.parametrize(
    "text",
    [
        "GET /t/PRIVATE/v1/models",
        "authorization: Bearer PRIVATE",
        "x-api-key: PRIVATE",
        "api_key=PRIVATE",
        "token=PRIVATE",
        "key enf_PRIVATE-PRIVATE",
        "key sk-PRIVATE-PRIVATE",
        "postgresql://enfold:PRIVATE@host/name",
    ],
)
def test_secrets_are_hidden(text: str) -> None:
    assert "PRIVATE" not in hide_in_log(text)
    assert "***" in hide_in_log(text)


@pytest.mark.parametrize("text", ["1,000 tokens: kept", "session=chat messages=12", "a task"])
def test_other_words_stay(text: str) -> None:
    assert hide_in_log(text) == text


def test_a_line_has_the_request_and_the_kind_of_error_but_not_its_words() -> None:
    record = logging.LogRecord("enfold", logging.ERROR, "f.py", 1, "said %d", (3,), None)
    record.exc_info = (LookupError, LookupError("private words"), None)
    record.route = "/api"
    held = current_request.set("id-1")
    try:
        line = JsonLines().format(record)
    finally:
        current_request.reset(held)
    assert "private words" not in line
    found = json.loads(line)
    assert found.pop("at").endswith("+00:00")
    assert found == {
        "level": "error",
        "logger": "enfold",
        "message": "said 3",
        "request_id": "id-1",
        "route": "/api",
        "error": "LookupError",
    }


@pytest.fixture
def _logs_as_before() -> Iterator[None]:
    names = ("enfold", "asyncio", "nicegui", "procrastinate", "psycopg", "uvicorn")
    loggers = [logging.getLogger(name) for name in names]
    before = [(each, each.handlers, each.level, each.propagate) for each in loggers]
    switches = (logging.logThreads, logging.logProcesses, logging.logMultiprocessing)
    source = logging._srcfile
    yield
    logging.logThreads, logging.logProcesses, logging.logMultiprocessing = switches
    logging._srcfile = source
    for logger, handlers, level, propagate in before:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


@pytest.mark.usefixtures("_logs_as_before")
@pytest.mark.parametrize("quiet", [False, True])
async def test_a_server_writes_a_line_for_each_request_unless_it_is_quiet(
    capsys: pytest.CaptureFixture[str], *, quiet: bool
) -> None:
    log_to_standard_error(quiet=quiet)
    answer = PlainTextResponse("ok", headers={"x-enfold-decision": "keep"})
    scope = {
        "type": "http",
        "method": "GET",
        "headers": [(b"x-request-id", b"id-1")],
        "state": {"route": "/v1/{rest:path}"},
    }

    async def send(_: object) -> None:
        pass

    await Tracing(answer, Metrics())(scope, send, send)  # type: ignore[arg-type] # it reads nothing
    logging.getLogger("enfold.server").warning("another line")
    lines = capsys.readouterr().err.splitlines()
    if quiet:
        assert lines == ["warning: another line"]
        return
    first, second = map(json.loads, lines)
    assert second["message"] == "another line"
    assert first["at"][:10] == second["at"][:10]
    assert len(first["at"]) == len("2026-01-01T00:00:00.000+00:00")
    assert first.pop("milliseconds") >= 0
    del first["at"]
    assert first == {
        "level": "info",
        "logger": "enfold.server",
        "message": "request",
        "request_id": "id-1",
        "method": "GET",
        "route": "/v1/{rest:path}",
        "status": 200,
        "caller": None,
        "decision": "keep",
    }
