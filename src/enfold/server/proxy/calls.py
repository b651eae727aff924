"""Calls: what a client asks of the proxy, for which provider, and if it is a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from http import HTTPStatus
from urllib.parse import quote

from starlette.types import Receive, Scope

from enfold import wire
from enfold.errors import BlockedError, EnfoldError, facts
from enfold.jsontext import dumps
from enfold.server.callers import caller_in
from enfold.server.headers import Header, find
from enfold.store import Store, access
from enfold.wire import Wire, says_overflow


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
    form: Wire | None
    """None for what is no conversation."""
    model: str | None = None
    """Where the path names it."""

    @property
    def is_array(self) -> bool:
        """True if the reply is streamed as one JSON array, not as events."""
        return self.form is not None and self.form.is_array_stream(self.path)

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
    found = wire.match_path(path) if scope["method"] == "POST" else None
    form, model = found or (None, None)
    return Call(
        method=scope["method"],
        path=f"{exact}?{query}" if query else exact,
        headers=headers,
        raw=b"".join(chunks),
        provider=form.upstream if form is not None else wire.find_upstream(path, headers),
        form=form,
        model=model,
    )


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
    body = wire.UPSTREAMS[provider].error_body(known.code, known.status, message)
    return known.status, headers, dumps(body)


def is_overflow(status: int, body: bytes) -> bool:
    """Whether a provider's answer says that the request was larger than the model's window."""
    return status in _OVERFLOW_STATUSES and says_overflow(body.decode("utf-8", "replace"))
