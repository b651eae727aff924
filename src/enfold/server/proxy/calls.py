"""Calls: what a client asks of the proxy, for which provider, and if it is a conversation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.types import Receive, Scope

from enfold.server.headers import Header, find
from enfold.server.proxy import bodies
from enfold.server.proxy.bodies import Form

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
