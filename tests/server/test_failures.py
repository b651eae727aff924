"""Failures: every error of ours is told with its code, its status and the request's id."""

from __future__ import annotations

import json

import pytest

from enfold.errors import (
    BlockedError,
    EnfoldError,
    NotFoundError,
    RateLimitError,
    TokenError,
    TooManyError,
    facts,
)
from enfold.server.failures import error_response, input_error, internal_error

SCOPE = {"type": "http", "state": {"request_id": "id-1"}}


@pytest.mark.parametrize(
    ("error", "header"),
    [
        (NotFoundError("there is none"), None),
        (BlockedError("it waits"), None),
        (TokenError("who are you"), ("www-authenticate", "Bearer")),
        (TooManyError("too many", retry_after=1.2), ("retry-after", "2")),
        (RateLimitError("slow down", retry_after=30), ("retry-after", "30")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, EnfoldError) else None,
)
def test_an_error_as_the_api_says_it(error: EnfoldError, header: tuple[str, str] | None) -> None:
    response = error_response(error, SCOPE)
    expected = facts(error)
    assert response.status_code == expected.status
    assert json.loads(bytes(response.body)) == {
        "error": {
            "code": expected.code,
            "message": str(error),
            "retryable": expected.retryable,
            "request_id": "id-1",
        }
    }
    if header is not None:
        assert response.headers[header[0]] == header[1]


def test_a_mistake_has_an_id() -> None:
    response = internal_error(SCOPE)
    assert response.status_code == 500
    assert json.loads(bytes(response.body))["error"]["request_id"] == "id-1"


def test_a_fault_names_its_field() -> None:
    fault = {"loc": ("body", "messages", 2, "role"), "msg": "Field required"}
    assert str(input_error([fault])) == "body.messages[2].role: Field required"
    assert str(input_error([fault, fault])).endswith("(and 1 more)")
