"""Errors of client libraries, translated."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelTimeoutError,
    UnexpectedModelBehavior,
    UserError,
)

from enfold.errors import (
    AuthenticationError,
    BadReplyError,
    ContextOverflowError,
    GatewayError,
    RateLimitError,
    RefusedError,
    UnavailableError,
)
from enfold.llm.calls import Connection, Secret
from enfold.llm.failures import failure_of, misfit

CONNECTION = Connection("openai", "gpt-4o", Secret("sk_secret"), timeout=7)


def http(status: int, body: object = None, code: str | None = None) -> ModelHTTPError:
    categories: dict[int, Any] = {
        400: ModelRequestRejectedError,
        401: ModelAuthenticationError,
        403: ModelAuthenticationError,
        404: ModelNotFoundError,
        429: ModelRateLimitError,
    }
    return ModelHTTPError.for_category(
        categories.get(status),
        status_code=status,
        model_name="m",
        body=body,
        provider_error_code=code,
    )


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (http(401), AuthenticationError, "openai:gpt-4o does not accept the key (status 401)"),
        (http(429), RateLimitError, "(status 429)"),
        (http(404), GatewayError, "does not exist (status 404)"),
        (http(400, code="bad_tool"), GatewayError, "(status 400, bad_tool)"),
        (http(413), ContextOverflowError, "(status 413)"),
        (http(418), GatewayError, "refuses this request (status 418)"),
        (http(400, code="content_filter"), RefusedError, "declined"),
        (ModelQuotaExceededError("m", "x"), RateLimitError, "no quota left"),
        (ModelTimeoutError("m", "x"), UnavailableError, "did not respond (for 7 s)"),
        (ModelConnectionError("m", "x"), UnavailableError, "cannot be reached"),
        (ModelAPIError("m", "x"), BadReplyError, "unreadable answer"),
        (ContentFilterError("x"), RefusedError, "declined"),
        (UnexpectedModelBehavior("x"), BadReplyError, "unreadable answer"),
        (UserError("x"), GatewayError, "refuses this request"),
        (KeyError("choices"), BadReplyError, "unreadable answer"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_every_error_becomes_one_of_ours(
    error: Exception, kind: type[GatewayError], words: str
) -> None:
    ours = failure_of(error, CONNECTION).error
    assert type(ours) is kind
    assert words in str(ours)
    assert "openai:gpt-4o" in str(ours)


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "the request exceeds the available context size",
        "Input is too long for requested model.",
        "The number of tokens to keep from the initial prompt is greater than the context length",
        "exceeds the maximum number of tokens allowed",
    ],
)
def test_an_overflow_is_recognised_by_its_words(message: str) -> None:
    failure = failure_of(http(400, {"error": {"message": message}}), CONNECTION)
    assert isinstance(failure.error, ContextOverflowError)
    assert not failure.repeatable


@pytest.mark.parametrize(
    ("error", "repeatable"),
    [(http(status), status in {429, 500, 502, 503, 529}) for status in
     (400, 401, 403, 404, 408, 429, 500, 502, 503, 529)]
    + [(ModelTimeoutError("m", "x"), False), (ModelConnectionError("m", "x"), False)],
    ids=lambda value: str(getattr(value, "status_code", type(value).__name__)),
)  # fmt: skip
def test_only_429_and_5xx_are_repeated(error: ModelAPIError, repeatable: bool) -> None:
    assert failure_of(error, CONNECTION).repeatable is repeatable
    assert not failure_of(error, CONNECTION, begun=True).repeatable


def test_an_error_inside_a_stream_is_not_repeated() -> None:
    error = http(503)
    error.in_stream = True
    assert not failure_of(error, CONNECTION).repeatable


def test_a_connection_that_breaks_later_broke_the_answer_off() -> None:
    ours = failure_of(ModelConnectionError("m", "x"), CONNECTION, begun=True).error
    assert isinstance(ours, BadReplyError)


def test_the_wait_that_is_asked_for_is_passed_on() -> None:
    error = ModelHTTPError.for_category(
        ModelRateLimitError, status_code=429, model_name="m", headers={"Retry-After": "12"}
    )
    failure = failure_of(error, CONNECTION)
    assert failure.pause == 12
    assert isinstance(failure.error, RateLimitError)
    assert failure.error.retry_after == 12


@pytest.mark.parametrize("code", ["sk_secret", "my_sk_secret_is", "Two words", "x" * 99])
def test_a_code_is_shown_only_if_it_is_one(code: str) -> None:
    assert code not in str(failure_of(http(400, code=code), CONNECTION).error)


def test_a_wrong_setting_is_named_if_the_library_names_it() -> None:
    assert "api_version" in str(misfit(UserError("give api_version"), CONNECTION))
    assert "sk_secret" not in str(misfit(ValueError("sk_secret"), CONNECTION))


def test_missing_credentials_are_an_authentication_error() -> None:
    missing = type("NoCredentialsError", (Exception,), {})()
    assert isinstance(misfit(missing, CONNECTION), AuthenticationError)
    assert isinstance(failure_of(missing, CONNECTION).error, AuthenticationError)
