"""The proxy's door: conversations are taken in hand, and everything else passes as it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, NoReturn, TypeAlias

from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.engine import Engine
from enfold.errors import EnfoldError, InputError
from enfold.records import UsageEvent, check_name
from enfold.server.bodies import unpacked
from enfold.server.headers import Header
from enfold.server.proxy.assembly import COPIED, copied
from enfold.server.proxy.bodies import Prefixes
from enfold.server.proxy.calls import (
    Call,
    is_by_key,
    is_overflow,
    open_namespaces,
    read_call,
    refusal,
)
from enfold.server.proxy.chains import complete, may_be_referred_to
from enfold.server.proxy.recall import RecallTurn
from enfold.server.proxy.recorder import Accounts, Answered, Ear, Heard, Keep
from enfold.server.proxy.turn import Asked, Outgoing, Seen, Turns, connection_of, finished
from enfold.server.proxy.upstream import Answer, Arriving, Upstream, gathered, is_stream
from enfold.settings import ServerSettings, upstreams
from enfold.wire.replies import Reply

_WITHOUT_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class Receiver:
    """The client, who waits for an answer."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False
        """Once it has, nothing else can be answered any more."""

    async def start(
        self, status: int, headers: Iterable[Header], length: int | None = None
    ) -> None:
        """The beginning of the answer, which has so many bytes if that is known."""
        self.has_begun = True
        lower = [(name.lower(), value) for name, value in headers]
        if length is not None and status not in _WITHOUT_BODY:
            lower.append((b"content-length", b"%d" % length))
        message: Message = {"type": "http.response.start", "status": status, "headers": lower}
        await self._send(message)

    async def say(self, chunk: bytes) -> None:
        """A piece of it."""
        await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self, last: bytes = b"") -> None:
        """The last piece."""
        await self._send({"type": "http.response.body", "body": last})


async def relay(
    answer: Arriving, own: Iterable[Header], to: Receiver, ear: Ear | None = None
) -> None:
    """The answer as it is, with headers of our own; `ear` listens to it."""
    await to.start(answer.status, [*answer.headers, *own], answer.length)
    waiting: list[bytes] = []
    left = answer.length
    try:
        async for chunk in answer.chunks():
            left = None if left is None else left - len(chunk)
            # The last piece goes out with word that it is the last: a short answer in one go.
            if (ear is not None and ear.hear(chunk)) or left == 0:
                waiting.append(chunk)
            else:
                await to.say(chunk)
        if ear is not None:
            await ear.ended()
    finally:
        if ear is not None:
            ear.close()
    await to.end(b"".join(waiting))


NamespaceOf: TypeAlias = Callable[[Scope], Awaitable[str]]

_log = logging.getLogger("enfold.proxy")

BODY_LIMIT = ServerSettings().body_limit
NOT_UNDERSTOOD = "not-understood"
HISTORY_NOT_VISIBLE = "history-not-visible"
_PATIENCE = 2.0
"""Seconds that the end of an answer waits until it is known here."""
_AT_ONCE = 0.1
"""Seconds from which on it is noticed that a client hangs up."""
_VERSIONS = ("v1", "v1beta", "v1alpha")


class Proxy:
    """An ASGI application: long conversations fit, everything else passes as it is."""

    def __init__(
        self,
        engine: Engine,
        upstream: Upstream,
        namespace_of: NamespaceOf,
        *,
        body_limit: int = BODY_LIMIT,
        tell: Callable[[UsageEvent], None] | None = None,
        warn: Callable[[str], None] = _log.debug,
    ) -> None:
        """`body_limit` is what a body may have once it is unpacked.

        `tell` hears what was used, `warn` by name what clients have to be warned of.
        """
        self._store = engine.store
        self._turns = Turns(engine)
        self._prefixes = Prefixes()
        self._accounts = Accounts(engine.store, tell)
        self._upstream = upstream
        self._namespace_of = namespace_of
        self._body_limit = body_limit
        self._warn = warn

    def routes(self) -> list[BaseRoute]:
        """Where it stands in an application."""
        return [_Version(version, self) for version in _VERSIONS]

    async def idle(self) -> None:
        """Wait until what was begun in the background is done."""
        await self._turns.idle()
        await self._accounts.idle()

    async def close(self) -> None:
        """Finish what was begun, and close the connections."""
        await self.idle()
        await self._upstream.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; a client that hangs up ends it."""
        call = await read_call(scope, receive)
        if call is not None:
            await _while_connected(self._answer(call, scope, Receiver(send)), receive)

    async def _answer(self, call: Call, scope: Scope, to: Receiver) -> None:
        asked: Asked | None = None
        try:
            asked, warning = await self._asked(call, scope)
            if asked is None or warning is not None:
                return await self._pass(call, asked, warning, to)
            out = await self._turns.take(asked)
            await self._forward(call, asked, out, to)
        except EnfoldError as error:
            if to.has_begun:
                raise  # the connection is closed: that is how a client sees that it broke off
            whose = asked.namespace if asked is not None else ""
            status, headers, body = refusal(error, call.provider, whose if is_by_key(whose) else "")
            await to.start(status, headers, len(body))
            await to.end(body)

    async def _asked(self, call: Call, scope: Scope) -> tuple[Asked | None, str | None]:
        """The conversation that is asked for, if it is one, and why it is passed on as it is."""
        namespace = await self._namespace_of(scope)
        if call.form is None:
            return None, None
        name = call.header(b"x-enfold-session")
        check_name("x-enfold-session", name or "")
        try:
            body, prefix = self._prefixes.read(call.form, await self._unpacked(call))
            model = call.model or body.value("model")
        except InputError:
            return None, NOT_UNDERSTOOD
        if not isinstance(model, str):
            return None, NOT_UNDERSTOOD
        asked = Asked(
            body,
            f"{call.form.provider}:{model}",
            namespace,
            name,
            may_recall=not call.is_array,
            connection=partial(connection_of, call, model, self._upstream.address(call.provider)),
        )
        whole = await complete(self._store, namespace, body)
        if whole is None:
            return asked, HISTORY_NOT_VISIBLE
        if not whole.body.messages:
            return asked, NOT_UNDERSTOOD
        has = whole.at_provider
        if has is not None:
            asked = replace(asked, session=name or has.session, provider_has=has)
        if whole.body is not body:
            return replace(asked, body=whole.body), None
        return replace(asked, prefix=prefix) if prefix is not None else asked, None

    async def _unpacked(self, call: Call) -> bytes:
        encoding = call.header(b"content-encoding")
        if encoding is None:
            return call.raw
        return await asyncio.to_thread(unpacked, call.raw, encoding, self._body_limit)

    async def _pass(
        self, call: Call, asked: Asked | None, warning: str | None, to: Receiver
    ) -> None:
        """The request as it is."""
        own = [(b"x-enfold-warning", warning.encode())] if warning else []
        async with self._ask(call) as answer:
            await relay(answer, own, to, self._ear(asked, None, answer))

    async def _forward(self, call: Call, asked: Asked, out: Outgoing, to: Receiver) -> None:
        async with self._ask(call, None if out.raw is asked.body.raw else out.raw) as answer:
            if answer.status < HTTPStatus.BAD_REQUEST:
                return await self._relay(call, asked, out, answer, to)
            body = await answer.read()
        again = None
        if is_overflow(answer.status, body):
            again = await finished(self._turns.take_again(asked))
        if again is None:
            await to.start(answer.status, [*answer.headers, *_said(out)], len(body))
            return await to.end(body)
        async with self._ask(call, again.raw) as second:
            return await self._relay(call, asked, again, second, to)

    async def _relay(
        self, call: Call, asked: Asked, out: Outgoing, answer: Answer, to: Receiver
    ) -> None:
        """The answer; where the model may recall, the one that all its answers make up."""
        arriving: Arriving = answer
        if out.recall is not None and answer.status < HTTPStatus.BAD_REQUEST:
            turn = RecallTurn(out.recall, lambda raw: self._ask(call, raw))
            arriving = await turn.answered(answer)
        if out.what != "keep" and not is_stream(arriving):
            whole = arriving = await gathered(arriving)
            if self._warn_of_copies(out, Heard(asked.body.form, whole.headers, [whole.body])):
                out = replace(out, warnings=(*out.warnings, COPIED))
        await relay(arriving, _said(out), to, self._ear(asked, out, arriving))

    def _warn_of_copies(self, out: Outgoing, heard: Heard) -> bool:
        """Whether a call has a marker in it; whoever runs the server hears of it too."""
        names = copied(heard)
        if names:
            self._warn(COPIED)
            tools = ", ".join(sorted(set(names)))
            _log.warning("session %s: a marker in the arguments of %s", out.session, tools)
        return bool(names)

    def _ear(self, asked: Asked | None, out: Outgoing | None, answer: Arriving) -> Ear | None:
        if asked is None or answer.status >= HTTPStatus.BAD_REQUEST:
            return None
        session = asked.session if out is None else out.session

        def count(heard: Heard) -> None:
            if out is not None and out.what != "keep" and is_stream(answer):
                self._warn_of_copies(out, heard)
            begun = out.seen.history if out is not None and out.seen is not None else None
            self._accounts.add(Answered(asked.namespace, session, asked.model, heard, begun))

        keep: Keep | None = None
        if out is not None and out.seen is not None and may_be_referred_to(asked.body):
            keep = partial(self._keep, out.seen)
        return Ear(Heard(asked.body.form, answer.headers), count, keep)

    async def _keep(self, seen: Seen, reply: Reply) -> None:
        """Remember the answer; if the store is slow, it goes on while the client has its end."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await finished(self._turns.keep(seen, reply))

    def _ask(self, call: Call, new: bytes | None = None) -> AbstractAsyncContextManager[Answer]:
        """The provider's answer to the call as it came, packed or not, or with a new body."""
        headers = call.headers
        if call.form is not None:
            # What a conversation is answered has to be read here too.
            headers = [*_without(headers, b"accept-encoding"), (b"accept-encoding", b"identity")]
        if new is not None:
            headers = _without(headers, b"content-encoding")
        raw = (call.raw if new is None else new) or None
        return self._upstream.ask(call.provider, call.method, call.path, headers, raw)


class _Version(BaseRoute):
    """All paths of a version of the providers' interfaces. Nothing is taken apart to match them."""

    def __init__(self, version: str, app: ASGIApp) -> None:
        self.path = f"/{version}/{{rest:path}}"
        self._begin = f"/{version}/"
        self._app = app

    def url_path_for(self, name: str, /, **path_params: Any) -> NoReturn:
        """It has no name."""
        raise NoMatchFound(name, path_params)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the request is one of these."""
        if scope["type"] == "http" and scope["path"].startswith(self._begin):
            return Match.FULL, {"route": self}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer it."""
        await self._app(scope, receive, send)


@asynccontextmanager
async def open_proxy(
    engine: Engine,
    *,
    body_limit: int = BODY_LIMIT,
    tell: Callable[[UsageEvent], None] | None = None,
    warn: Callable[[str], None] = _log.debug,
) -> AsyncIterator[Proxy]:
    """The proxy over an engine, in front of the providers that the environment names."""
    namespaces = await open_namespaces(engine.store)
    upstream = Upstream(upstreams())
    proxy = Proxy(engine, upstream, namespaces, body_limit=body_limit, tell=tell, warn=warn)
    try:
        yield proxy
    finally:
        await proxy.close()


def _without(headers: list[Header], unwanted: bytes) -> list[Header]:
    return [(name, value) for name, value in headers if name != unwanted]


def _said(out: Outgoing) -> list[Header]:
    said = [
        (b"x-enfold-decision", out.what),
        (b"x-enfold-tokens-before", str(out.tokens_before)),
        (b"x-enfold-tokens-after", str(out.tokens_after)),
        (b"x-enfold-session", out.session or ""),
        (b"x-enfold-warning", ", ".join(out.warnings)),
    ]
    return [(name, value.encode("latin-1", "replace")) for name, value in said if value]


async def _while_connected(work: Coroutine[Any, Any, None], receive: Receive) -> None:
    """Do it, unless the client hangs up."""
    task = asyncio.current_task()
    gone: asyncio.Future[Message] | None = None
    is_over = False

    def listen() -> None:
        nonlocal gone
        gone = asyncio.ensure_future(receive())
        gone.add_done_callback(stop)

    def stop(_: object) -> None:
        if task is not None and not is_over:
            task.cancel()

    # Whoever is answered at once has no time to hang up, and listening would cost them some.
    soon = asyncio.get_running_loop().call_later(_AT_ONCE, listen)
    try:
        await work
    except asyncio.CancelledError:
        if task is None or gone is None or not gone.done() or task.uncancel():
            raise  # somebody else wants it to end
    finally:
        is_over = True
        soon.cancel()
        if gone is not None:
            gone.cancel()
