"""Errors of enfold in the format of the client's provider."""

from __future__ import annotations

import json

import pytest

from enfold.errors import BlockedError, OverloadError, UnavailableError
from enfold.server.proxy.client import error_response, is_overflow_response


@pytest.mark.parametrize(
    ("provider", "path"),
    [
        ("openai", ("error", "message")),
        ("anthropic", ("error", "message")),
        ("gemini", ("error", "message")),
    ],
    ids=["openai", "anthropic", "gemini"],
)
def test_a_blocked_session_says_how_to_go_on(provider: str, path: tuple[str, str]) -> None:
    error = BlockedError("it failed", session="s 1")
    status, headers, body = error_response(error, provider, "key-1")
    message = json.loads(body)[path[0]][path[1]]
    assert status == 409
    assert "it failed" in message
    assert "POST /api/sessions/s%201/retry" in message
    assert "x-enfold-namespace: key-1" in message
    assert dict(headers)[b"x-should-retry"] == b"false"


def test_temporary_errors_invite_a_retry() -> None:
    status, headers, _ = error_response(UnavailableError("gone"), "anthropic")
    assert (status, dict(headers)[b"x-should-retry"]) == (503, b"true")
    status, headers, _ = error_response(OverloadError("busy", retry_after=1.2), "anthropic")
    assert (status, dict(headers)[b"retry-after"]) == (503, b"2")


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, b'{"error": {"code": "context_length_exceeded"}}', True),
        (400, b'{"error": {"message": "prompt is too long: 201 tokens > 200 maximum"}}', True),
        (400, b"The input token count (9) exceeds the maximum number of tokens allowed (8)", True),
        (413, b"the request exceeds the available context size", True),
        (400, b'{"error": {"message": "unknown field"}}', False),
        (500, b"context_length_exceeded", False),
    ],
    ids=["openai", "anthropic", "gemini", "llama.cpp", "another", "another status"],
)
def test_an_overflow_is_known_by_status_and_words(status: int, body: bytes, expected: bool) -> None:
    assert is_overflow_response(status, body) is expected
