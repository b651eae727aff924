"""Logs: a line of JSON each, and no secret in it."""

from __future__ import annotations

import json
import logging

import pytest

from enfold.server.request_log import JsonLines, current_request
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
