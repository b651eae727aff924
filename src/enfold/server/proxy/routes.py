"""The proxy's door: which requests are conversations, and how answers get back to the client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeAlias, TypeVar

from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from enfold.engine import Engine
from enfold.errors import EnfoldError, InputError
from enfold.server.proxy import bodies
from enfold.server.proxy.bodies import Body, Form
from enfold.server.proxy.namespaces import open_namespaces
from enfold.server.proxy.refusals import is_overflow, refusal
from enfold.server.proxy.turn import Asked, Outgoing, Turns
from enfold.server.proxy.upstream import Answer, Header, Upstream
from enfold.settings import upstreams

Result = TypeVar("Result")
NamespaceOf: TypeAlias = Callable[[Scope], Awaitable[str]]

NOT_UNDERSTOOD = "not-understood"
HISTORY_NOT_VISIBLE = "history-not-visible"
_ELSEWHERE = ("previous_response_id", "conversation")
"""Fields of a request whose history is at the provider."""

_VERSIONS = ("v1", "v1beta", "v1alpha")
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

    def header(self, name: bytes) -> str | None:
        """The value of a header, whose name is in small letters."""
        found = next((value for key, value in self.headers if key == name), None)
        return None if found is None else found.decode("latin-1")


class Proxy:
    """An ASGI application: long conversations fit, everything else passes as it is."""

    def __init__(self, engine: Engine, upstream: Upstream, namespace_of: NamespaceOf) -> None:
        self._turns = Turns(engine)
        self._upstream = upstream
        self._namespace_of = namespace_of

    def routes(self) -> list[BaseRoute]:
        """Where it stands in an application."""
        return [Route(f"/{version}/{{rest:path}}", self) for version in _VERSIONS]

    async def close(self) -> None:
        """Finish what was begun, and close the connections."""
        await self._turns.close()
        await self._upstream.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; a client that hangs up ends it."""
        call = await _read(scope, receive)
        if call is not None:
            await _while_connected(self._answer(call, scope, send), receive)

    async def _answer(self, call: Call, scope: Scope, send: Send) -> None:
        session = call.header(b"x-enfold-session")
        try:
            asked, warning = await self._asked(call, scope)
            if asked is None:
                await self._pass(call, warning, send)
                return
            out = await _finished(self._turns.take(asked))
            session = out.session
            await self._forward(call, asked, out, send)
        except EnfoldError as error:
            status, headers, body = refusal(error, call.provider, session)
            await _start(send, status, headers)
            await send({"type": "http.response.body", "body": body})

    async def _asked(self, call: Call, scope: Scope) -> tuple[Asked | None, str | None]:
        """The conversation that is asked for; None, and why, where it is passed on as it is."""
        namespace = await self._namespace_of(scope)
        if call.form is None:
            return None, None
        if call.header(b"content-encoding") is not None:
            return None, NOT_UNDERSTOOD
        try:
            body = bodies.read(call.form, call.raw)
            model = call.model or body.value("model")
        except InputError:
            return None, NOT_UNDERSTOOD
        if not isinstance(model, str) or not body.messages:
            return None, NOT_UNDERSTOOD
        if _is_elsewhere(body):
            return None, HISTORY_NOT_VISIBLE
        name = call.header(b"x-enfold-session")
        return Asked(body, f"{call.form.provider}:{model}", namespace, name), None

    async def _pass(self, call: Call, warning: str | None, send: Send) -> None:
        """The request as it is."""
        own = [(b"x-enfold-warning", warning.encode())] if warning else []
        async with self._ask(call, call.raw) as answer:
            await _relay(answer, own, send)

    async def _forward(self, call: Call, asked: Asked, out: Outgoing, send: Send) -> None:
        async with self._ask(call, out.raw) as answer:
            if answer.status < HTTPStatus.BAD_REQUEST:
                return await _relay(answer, _said(out), send)
            body = await answer.read()
        again = None
        if is_overflow(answer.status, body):
            again = await _finished(self._turns.take_again(asked))
        if again is None:
            await _start(send, answer.status, [*answer.headers, *_said(out)])
            return await send({"type": "http.response.body", "body": body})
        async with self._ask(call, again.raw) as second:
            return await _relay(second, _said(again), send)

    def _ask(self, call: Call, raw: bytes) -> AbstractAsyncContextManager[Answer]:
        return self._upstream.ask(call.provider, call.method, call.path, call.headers, raw or None)


@asynccontextmanager
async def open_proxy(engine: Engine) -> AsyncIterator[Proxy]:
    """The proxy over an engine, in front of the providers that the environment names."""
    proxy = Proxy(engine, Upstream(upstreams()), await open_namespaces(engine.store))
    try:
        yield proxy
    finally:
        await proxy.close()


async def _read(scope: Scope, receive: Receive) -> Call | None:
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


def _is_elsewhere(body: Body) -> bool:
    return any(body.fields.get(name, b"null") != b"null" for name in _ELSEWHERE)


def _said(out: Outgoing) -> list[Header]:
    said = [
        (b"x-enfold-decision", out.what),
        (b"x-enfold-tokens-before", str(out.tokens_before)),
        (b"x-enfold-tokens-after", str(out.tokens_after)),
        (b"x-enfold-session", out.session or ""),
        (b"x-enfold-warning", ", ".join(out.warnings)),
    ]
    return [(name, value.encode("latin-1", "replace")) for name, value in said if value]


async def _relay(answer: Answer, own: list[Header], send: Send) -> None:
    """The answer, piece by piece as it arrives."""
    await _start(send, answer.status, [*answer.headers, *own])
    async for chunk in answer.chunks():
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def _start(send: Send, status: int, headers: list[Header]) -> None:
    lower = [(name.lower(), value) for name, value in headers]
    message: Message = {"type": "http.response.start", "status": status, "headers": lower}
    await send(message)


async def _while_connected(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Do it, unless the client hangs up."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(receive())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
    finally:
        gone.cancel()
        task.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _finished(work: Coroutine[Any, Any, Result]) -> Result:
    """Its result. It goes on if the client hangs up: the next try then finds it done."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)
