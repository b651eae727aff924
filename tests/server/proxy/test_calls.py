"""A client's request: its provider, and perhaps its conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from enfold.server.proxy.client import read_http_request
from enfold.wire import WIRES


def _scope(path: str, method: str = "POST", headers: Any = (), query: bytes = b"") -> Any:
    raw = path.encode()
    return {
        "method": method,
        "path": path,
        "raw_path": raw,
        "query_string": query,
        "headers": list(headers),
    }


def _arriving(*messages: Any) -> Callable[[], Awaitable[Any]]:
    left = list(messages)

    async def receive() -> Any:
        return left.pop(0)

    return receive


@pytest.mark.parametrize(
    ("path", "headers", "provider", "form", "is_count"),
    [
        ("/v1/chat/completions", (), "openai", WIRES["openai"], False),
        ("/v1/responses", (), "openai", WIRES["openai-responses"], False),
        ("/v1/messages", (), "anthropic", WIRES["anthropic"], False),
        ("/v1beta/models/g:generateContent", (), "gemini", WIRES["gemini"], False),
        ("/v1beta/models/g:countTokens", (), "gemini", WIRES["gemini"], True),
        ("/v1/messages/count_tokens", (), "anthropic", WIRES["anthropic"], True),
        ("/v1/responses/input_tokens", (), "openai", WIRES["openai-responses"], True),
        ("/v1/embeddings", (), "openai", None, False),
        ("/v1/models", [(b"x-goog-api-key", b"k")], "gemini", None, False),
    ],
)
async def test_a_path_says_whose_it_is_and_whether_it_is_a_conversation(
    path: str, headers: Any, provider: str, form: Any, is_count: bool
) -> None:
    call = await read_http_request(
        _scope(path, headers=headers), _arriving({"type": "http.request"})
    )
    assert call is not None
    assert (call.upstream, call.wire, call.is_count) == (provider, form, is_count)


async def test_only_what_is_posted_is_a_conversation() -> None:
    arriving = _arriving({"type": "http.request"})
    call = await read_http_request(_scope("/v1/responses", "GET", query=b"a=%2F"), arriving)
    assert call is not None
    assert (call.wire, call.path) == (None, "/v1/responses?a=%2F")


async def test_a_body_is_read_to_its_end() -> None:
    pieces = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.request", "body": b"}"},
    ]
    call = await read_http_request(
        _scope("/v1/messages", headers=[(b"x-a", b"1")]), _arriving(*pieces)
    )
    assert call is not None
    assert (call.raw, call.header(b"x-a"), call.header(b"x-b")) == (b"{}", "1", None)


async def test_a_client_that_leaves_before_its_request_is_whole_asked_for_nothing() -> None:
    pieces = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]
    assert await read_http_request(_scope("/v1/messages"), _arriving(*pieces)) is None
