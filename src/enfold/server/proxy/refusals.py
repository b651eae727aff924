"""Refusals: what enfold itself has to say to a client, in the words of the client's provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from enfold.errors import BlockedError, EnfoldError, facts
from enfold.jsontext import dumps
from enfold.llm.overflows import says_overflow
from enfold.server.headers import Header

_OVERFLOW_STATUSES = frozenset({400, 413})


def _openai(code: str, _status: int, message: str) -> Any:
    return {"error": {"message": message, "type": "enfold_error", "param": None, "code": code}}


def _anthropic(code: str, _status: int, message: str) -> Any:
    return {"type": "error", "error": {"type": code, "message": message}}


def _gemini(code: str, status: int, message: str) -> Any:
    return {"error": {"code": status, "message": message, "status": code.upper()}}


_SHAPES: Mapping[str, Callable[[str, int, str], Any]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "gemini": _gemini,
}


def refusal(
    error: EnfoldError, provider: str, namespace: str = ""
) -> tuple[int, list[Header], bytes]:
    """The error as the provider would say one: status, headers, body.

    `namespace` is the client's, where that has to be named to go on.
    """
    known = facts(error)
    message = f"enfold: {error}"
    if isinstance(error, BlockedError) and error.session is not None:
        path = f"POST /api/sessions/{quote(error.session, safe='')}"
        header = f", with the header x-enfold-namespace: {namespace}" if namespace else ""
        message += f" ({path}/retry, or {path}/acknowledge{header})"
    headers = [
        (b"content-type", b"application/json"),
        # Client libraries try some statuses again by themselves; here that would not help.
        (
            b"x-should-retry",
            b"true" if known.retryable and known.status != HTTPStatus.CONFLICT else b"false",
        ),
    ]
    return known.status, headers, dumps(_SHAPES[provider](known.code, known.status, message))


def is_overflow(status: int, body: bytes) -> bool:
    """Whether a provider's answer says that the request was larger than the model's window."""
    return status in _OVERFLOW_STATUSES and says_overflow(body.decode("utf-8", "replace"))
