"""The client's side of the proxy: its HTTP request, its namespace, and the response it receives."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from starlette.types import Message, Receive, Scope, Send

from enfold import wire
from enfold.engine.recognition import CLIENT_WINDOWS
from enfold.errors import BlockedError, EnfoldError, facts
from enfold.jsontext import dumps
from enfold.llm.calls import Connection, Secret
from enfold.records import KEY_NAMESPACE
from enfold.server.access import Header, caller_in, first_headers, first_values
from enfold.server.connections import WHOLE_ANSWER, call_on_disconnect, takes_whole_answer
from enfold.server.failures import retry_after
from enfold.server.load import RequestLoad, request_load
from enfold.server.proxy.upstream import WITHOUT_BODY
from enfold.wire import Wire

_KEY_HEADERS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
"""The headers in which clients send the key of their provider."""
_BEARER = "bearer "
_THREAD_BYTES = 2**20
"""Bytes of a body from which it is joined in a thread; Python lets others run from this size on."""
_OVERFLOW_STATUSES = frozenset({400, 413, 422})


@dataclass(slots=True)
class HttpRequest:
    """A client's HTTP request with its whole body."""

    method: str
    path: str
    """With the query, as it came."""
    headers: list[Header]
    raw: bytes
    upstream: str
    """The name of the upstream server that it is forwarded to."""
    wire: Wire | None
    """None for a request that is not a conversation."""
    model: str | None = None
    """The model, if the path names it."""
    is_count: bool = False
    """True if it only asks for the number of a conversation's tokens."""
    load: RequestLoad | None = None
    """Its load on the server."""
    named: Mapping[bytes, bytes] = field(default_factory=dict, repr=False)
    """The first value of each header."""

    def __post_init__(self) -> None:
        if not self.named:
            self.named = first_values(self.headers)

    def header(self, name: bytes) -> str | None:
        """Return the value of a header; the name is in lower case."""
        found = self.named.get(name)
        return None if found is None else found.decode("latin-1")

    def turn(self, size: int) -> AbstractAsyncContextManager[None]:
        """Wait until a body of this size may be read."""
        return nullcontext() if self.load is None else self.load.turn(size)

    def api_key(self) -> str | None:
        """Return the client's key for its provider."""
        # A header that holds nothing but the key counts before `authorization`.
        for name in (*_KEY_HEADERS[1:], _KEY_HEADERS[0]):
            if value := self.header(name):
                is_bearer = value.lower().startswith(_BEARER)
                return value[len(_BEARER) :] if is_bearer else value
        query = parse_qs(urlsplit(self.path).query)
        return query.get("key", [""])[0] or None

    def connection(self, model: str, address: str) -> Connection | None:
        """Return a connection to the request's model with the client's key; None without a key."""
        key = self.api_key()
        if self.wire is None or key is None:
            return None
        base_url = f"{address}{self.wire.library_path}"
        return Connection(self.wire.provider, model, Secret(key), base_url)


async def read_http_request(scope: Scope, receive: Receive) -> HttpRequest | None:
    """Read a request to its end; None if the client disconnects before."""
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    if len(chunks) == 1:
        raw = chunks[0]
    elif sum(map(len, chunks)) < _THREAD_BYTES:
        raw = b"".join(chunks)
    else:
        raw = await asyncio.to_thread(b"".join, chunks)
    chunks.clear()
    path, headers = scope["path"], list(scope["headers"])
    exact_path = (scope.get("raw_path") or quote(path).encode()).decode("latin-1")
    query = scope.get("query_string", b"").decode("latin-1")
    matched = counted = None
    if scope["method"] == "POST":
        matched = wire.match_path(path)
        counted = wire.match_count_path(path) if matched is None else None
    found, model = matched or counted or (None, None)
    return HttpRequest(
        method=scope["method"],
        path=f"{exact_path}?{query}" if query else exact_path,
        headers=headers,
        raw=raw,
        upstream=found.upstream if found is not None else wire.find_upstream(path, headers),
        wire=found,
        model=model,
        is_count=counted is not None,
        load=request_load(scope),
        named=first_headers(scope),
    )


class ProxyNamespaces:
    """Finds the namespace of a request."""

    def __init__(self, key: bytes) -> None:
        """`key` is the secret with which the clients' keys are hashed."""
        self._key = key

    async def __call__(self, scope: Scope) -> str:
        """Return the namespace of the access token, else that of the client's key."""
        caller = caller_in(scope)
        if caller.has_token or caller.namespace:
            return caller.namespace
        headers = first_headers(scope)
        for name in _KEY_HEADERS:
            value = headers.get(name)
            if value is not None:
                digest = blake2b(value, key=self._key, digest_size=16).hexdigest()
                return f"{KEY_NAMESPACE}{digest}"
        return caller.namespace


class ClientResponse:
    """The response that the client receives."""

    def __init__(self, send: Send, scope: Scope | None = None) -> None:
        """`scope` is the request's; without it every answer is sent in parts."""
        self._send = send
        self._scope = scope
        self.has_started = False
        """True once the status is sent: from then on the response cannot be replaced."""

    async def start(
        self, status: int, headers: Iterable[Header], length: int | None = None
    ) -> None:
        """Send status and headers; `length` is the size of the body, if it is known."""
        self.has_started = True
        lower = [(name.lower(), value) for name, value in headers]
        if length is not None and status not in WITHOUT_BODY:
            lower.append((b"content-length", b"%d" % length))
        message: Message = {"type": "http.response.start", "status": status, "headers": lower}
        await self._send(message)

    async def write(self, chunk: bytes) -> None:
        """Send a part of the body."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self, last: bytes = b"") -> None:
        """Send the last part of the body."""
        await self._send({"type": "http.response.body", "body": last})

    async def send_whole(self, status: int, headers: Iterable[Header], body: bytes) -> None:
        """Send a complete response."""
        if self._scope is None or not takes_whole_answer(self._scope, status):
            await self.start(status, headers, len(body))
            await self.end(body)
            return
        self.has_started = True
        await self._send(
            {"type": WHOLE_ANSWER, "status": status, "headers": list(headers), "body": body}
        )


def error_response(
    error: EnfoldError, upstream: str, namespace: str = ""
) -> tuple[int, list[Header], bytes]:
    """Return the error in the upstream's format: status, headers, body.

    `namespace` is the client's, if it must send it to retry or acknowledge a blocked session.
    """
    found = facts(error)
    message = f"enfold: {error}"
    if isinstance(error, BlockedError) and error.session is not None:
        path = f"POST /api/sessions/{quote(error.session, safe='')}"
        header = ""
        if namespace.startswith(KEY_NAMESPACE):
            header = f", with the header x-enfold-namespace: {namespace}"
        message += f" ({path}/retry, or {path}/acknowledge{header})"
    # Client libraries retry some statuses on their own. A conflict is not solved by that.
    should_retry = found.retryable and found.status != HTTPStatus.CONFLICT
    headers = [
        (b"content-type", b"application/json"),
        (b"x-should-retry", b"true" if should_retry else b"false"),
    ]
    if (seconds := retry_after(error)) is not None:
        headers.append((b"retry-after", seconds.encode()))
    if isinstance(error, BlockedError):
        headers.append((b"x-enfold-decision", b"blocked"))
        headers.append((b"x-enfold-session", (error.session or "").encode("latin-1", "replace")))
    body = wire.UPSTREAMS[upstream].error_body(found.code, found.status, message)
    return found.status, headers, dumps(body)


def is_overflow_response(status: int, body: bytes) -> bool:
    """Return True if the provider refused the request because it exceeds the model's window."""
    return status in _OVERFLOW_STATUSES and wire.says_overflow(body.decode("utf-8", "replace"))


async def run_while_connected(
    work: Coroutine[Any, Any, None], scope: Scope, receive: Receive
) -> None:
    """Run the coroutine, and cancel it if the client disconnects."""
    task = asyncio.current_task()
    disconnect: asyncio.Future[Message] | None = None
    is_over = is_disconnected = False

    def stop(*_: object) -> None:
        nonlocal is_disconnected
        if task is not None and not is_over:
            is_disconnected = True
            task.cancel()

    if not call_on_disconnect(scope, stop):
        disconnect = asyncio.ensure_future(receive())
        disconnect.add_done_callback(stop)
    try:
        await work
    except asyncio.CancelledError:
        if task is None or not is_disconnected or task.uncancel():
            raise  # the cancellation comes from outside of this function
    finally:
        is_over = True
        if disconnect is not None:
            disconnect.cancel()


# The name of the program that sent a request.


_SESSION_HEADERS = (
    b"x-claude-code-session-id",
    b"session-id",
    b"session_id",
    b"x-opencode-session",
    b"x-session-affinity",
)
"""Headers in which clients send the id of their session."""
_ALL_SESSION_HEADERS = frozenset(_SESSION_HEADERS)
_SESSION_ID = re.compile(rb"[\w.:-]{16,128}", re.ASCII)
"""Shorter ids could be guessed, or be the same for two people."""
_COMPACTED = (
    b"This session is being continued from a previous conversation",  # Claude Code
    b"Another language model started to solve this problem and produced a summary",  # Codex
    b'"type":"compaction"',  # the provider's own summary, as Codex sends it back
    b'"type": "compaction"',
    b"<state_snapshot>",  # Gemini CLI
)
"""Words with which clients begin a history after they have compacted it."""
_BY_HEADER = (
    (b"x-claude-code-session-id", None, "Claude Code"),
    (b"originator", re.compile(r"codex", re.IGNORECASE), "Codex"),
    (b"x-title", re.compile(r"aider", re.IGNORECASE), "aider"),
    (b"http-referer", re.compile(r"aider\.chat", re.IGNORECASE), "aider"),
)
"""Headers that only one program sends: name, pattern of the value if it matters, program."""
_NAMING_HEADERS = frozenset(header for header, _, _ in _BY_HEADER)

_BY_USER_AGENT = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"claude-cli|claude-code", "Claude Code"),
        (r"codex[_-]", "Codex"),
        (r"opencode", "opencode"),
        (r"gemini-?cli", "Gemini CLI"),
        (r"aider", "aider"),
        (r"roo-?code", "Roo Code"),
        (r"cline", "Cline"),
        (r"githubcopilot", "GitHub Copilot"),
        (r"openhands", "OpenHands"),
        (r"pydantic-ai", "pydantic-ai"),
        (r"^agents/", "OpenAI Agents SDK"),
        (r"langchain|langgraph", "LangChain"),
        (r"litellm", "LiteLLM"),
        (r"\bai-sdk", "AI SDK"),
        (r"^(?:async)?openai/python", "OpenAI SDK (Python)"),
        (r"^(?:async)?openai/js", "OpenAI SDK (JavaScript)"),
        (r"^(?:async)?anthropic/python", "Anthropic SDK (Python)"),
        (r"^(?:async)?anthropic/js", "Anthropic SDK (JavaScript)"),
        (r"google-genai-sdk.*gl-python", "Google Gen AI SDK (Python)"),
        (r"google-genai-sdk", "Google Gen AI SDK (JavaScript)"),
    )
)
_MAX_OPENING = 200
"""Messages before the first reply that are looked at; Codex keeps all prompts there."""
_LONG_CONTEXT = b"context-1m"
"""The beta feature with which the window of a million tokens is enabled."""
_PRODUCT = re.compile(r"[A-Za-z][\w.+-]{0,39}")
"""The first word of any other user agent, such as `curl` in `curl/8.5.0`."""


def client_name(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the name of the program that sent these headers; None if it is unknown."""
    if not _NAMING_HEADERS.isdisjoint(headers):
        for header, pattern, name in _BY_HEADER:
            value = headers.get(header)
            if value is not None and (pattern is None or pattern.search(value.decode("latin-1"))):
                return name
    return _name_of(headers.get(b"user-agent", b"").decode("latin-1"))


def client_session(headers: Mapping[bytes, bytes]) -> str | None:
    """Return the session id that a client sends; None if it sends none."""
    if _ALL_SESSION_HEADERS.isdisjoint(headers):
        return None
    for name in _SESSION_HEADERS:
        if (value := headers.get(name)) is not None and _SESSION_ID.fullmatch(value):
            return value.decode()
    return None


def has_compacted(messages: Sequence[bytes]) -> bool:
    """Return True if a history begins with the client's own summary of an earlier one.

    The words must come before the first reply: the model may quote them later.
    """
    for message in messages[:_MAX_OPENING]:
        if any(words in message for words in _COMPACTED):
            return True
        if b'"assistant"' in message or b'"function_call"' in message:
            return False
    return False


def client_window(client: str | None, headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """Return the context window that a program works with; None if it uses the model's.

    Beta features may come in several lines of the header.
    """
    window = CLIENT_WINDOWS.get(client or "")
    if window is None:
        return None
    features = (value for name, value in headers if name == b"anthropic-beta")
    return None if any(_LONG_CONTEXT in value for value in features) else window


@lru_cache(maxsize=1_000)
def _name_of(agent: str) -> str | None:
    for pattern, name in _BY_USER_AGENT:
        if pattern.search(agent):
            return name
    product = _PRODUCT.match(agent)
    return product[0] if product else None
