"""Calls: what a client asks of the proxy, for which provider, and if it is a conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.types import Receive, Scope

from enfold.errors import BlockedError, EnfoldError, facts
from enfold.jsontext import dumps
from enfold.llm.failures import says_overflow
from enfold.server.callers import caller_in
from enfold.server.headers import Header, find
from enfold.server.proxy import bodies
from enfold.server.proxy.bodies import Form
from enfold.store import Store, access

_FORMS = {
    "/v1/chat/completions": bodies.OPENAI,
    "/v1/responses": bodies.RESPONSES,
    "/v1/messages": bodies.ANTHROPIC,
}
_GEMINI = re.compile(
    r"/v1(?:beta|alpha)?/models/([^/:]+):(?:generateContent|streamGenerateContent)"
)
_MARKS = {b"anthropic-version": "anthropic", b"x-goog-api-key": "gemini"}
"""Headers by which a provider's clients are known."""


@dataclass(frozen=True, slots=True)
class Call:
    """A client's request, read whole."""

    method: str
    path: str
    """With its query, as it came."""
    headers: list[Header]
    raw: bytes
    provider: str
    """Whose address it goes to."""
    form: Form | None
    """None for what is no conversation."""
    model: str | None = None
    """Where the path names it."""

    @property
    def is_array(self) -> bool:
        """Whether Gemini streams its reply as one array in place of events."""
        return ":streamGenerateContent" in self.path and "alt=sse" not in self.path

    def header(self, name: bytes) -> str | None:
        """The value of a header, whose name is in small letters."""
        found = find(self.headers, name)
        return None if found is None else found.decode("latin-1")


async def read_call(scope: Scope, receive: Receive) -> Call | None:
    """The request; None if the client left before it was whole."""
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        if not message.get("more_body"):
            break
    path = scope["path"]
    exact = (scope.get("raw_path") or path.encode()).decode("latin-1")
    query = scope.get("query_string", b"").decode("latin-1")
    headers = list(scope["headers"])
    form, model = _form(scope["method"], path)
    return Call(
        method=scope["method"],
        path=f"{exact}?{query}" if query else exact,
        headers=headers,
        raw=b"".join(chunks),
        provider=_provider(form, path, headers),
        form=form,
        model=model,
    )


def _form(method: str, path: str) -> tuple[Form | None, str | None]:
    if method != "POST":
        return None, None
    if found := _GEMINI.fullmatch(path):
        return bodies.GEMINI, found[1]
    return _FORMS.get(path), None


def _provider(form: Form | None, path: str, headers: list[Header]) -> str:
    if form is not None:
        return form.upstream
    if path.startswith("/v1beta/"):
        return "gemini"
    return next((_MARKS[name] for name, _ in headers if name in _MARKS), "openai")


_KEYS = (b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key")
"""Where clients put the key for their provider."""


_BY_KEY = "key-"


def is_by_key(namespace: str) -> bool:
    """Whether its people are known by their provider's key, and have no access token."""
    return namespace.startswith(_BY_KEY)


class Namespaces:
    """Gives every request its namespace."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    async def __call__(self, scope: Scope) -> str:
        """The access token's, else that of the provider's key, else this machine's own."""
        caller = caller_in(scope)
        if caller.has_token or caller.namespace:
            return caller.namespace
        for name in _KEYS:
            given = find(scope["headers"], name)
            if given is not None:
                return f"{_BY_KEY}{blake2b(given, key=self._key, digest_size=16).hexdigest()}"
        return caller.namespace


async def open_namespaces(store: Store) -> Namespaces:
    """The namespaces of a store, the same in every process that serves it."""
    return Namespaces(await store.write(access.namespace_secret))


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
