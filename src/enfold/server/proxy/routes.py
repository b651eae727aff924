"""The proxy's routes: conversations are made to fit, other requests are forwarded unchanged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, TypeAlias, TypeGuard, TypeVar

from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.amounts import CallUsage
from enfold.engine import Engine
from enfold.engine.recognition import ProxiedConversations
from enfold.errors import EnfoldError, InputError, StoreError
from enfold.records import UsageEvent, check_name, conversation_name
from enfold.server.access import Header
from enfold.server.bodies import unpacked
from enfold.server.proxy.assembly import MARKER_COPIED, tools_with_marker
from enfold.server.proxy.background import BackgroundCompressions
from enfold.server.proxy.bodies import (
    LARGE_BODY,
    MAX_MESSAGES,
    MAX_TEXT,
    BodyPrefix,
    PrefixCache,
    RequestBody,
    has_long_texts,
    has_too_much_text,
)
from enfold.server.proxy.client import (
    ClientResponse,
    HttpRequest,
    ProxyNamespaces,
    client_name,
    client_session,
    client_window,
    error_response,
    is_overflow_response,
    read_http_request,
    run_while_connected,
)
from enfold.server.proxy.recall import RecallLoop
from enfold.server.proxy.recorder import (
    ProxiedCall,
    RecordedResponse,
    ResponseRecorder,
    SaveReply,
    UsageWriter,
    can_be_continued,
    complete_request,
    may_be_incomplete,
    provider_conversation_id,
)
from enfold.server.proxy.turn import (
    ForwardedRequest,
    ProxyPipeline,
    ProxyRequest,
    run_to_completion,
)
from enfold.server.proxy.upstream import (
    BAD_REQUEST,
    RelayedResponse,
    Upstream,
    UpstreamResponse,
    buffer_response,
    is_stream,
)
from enfold.settings import ServerSettings, upstreams
from enfold.wire import Wire
from enfold.wire.replies import Reply

Source = TypeVar("Source")
FindNamespace: TypeAlias = Callable[[Scope], Awaitable[str]]

BODY_LIMIT = ServerSettings().body_limit
READ_TIMEOUT = ServerSettings().read_timeout
NOT_UNDERSTOOD = "not-understood"
HISTORY_NOT_VISIBLE = "history-not-visible"
TOO_LONG_TO_READ = "too-long-to-read"
_SAVE_TIMEOUT = 2.0
"""Seconds that the end of a response waits at most until the reply is saved."""
_VERSIONS = ("v1", "v1beta", "v1alpha")

_log = logging.getLogger("enfold.proxy")


class Proxy:
    """An ASGI application that forwards requests to the providers."""

    def __init__(
        self,
        engine: Engine,
        upstream: Upstream,
        find_namespace: FindNamespace,
        *,
        body_limit: int = BODY_LIMIT,
        on_usage: Callable[[UsageEvent], None] | None = None,
        on_warning: Callable[[str], None] = _log.debug,
        background: BackgroundCompressions | None = None,
    ) -> None:
        """`body_limit` is the maximum size of a decompressed body in bytes.

        `on_usage` is called with the usage of each call, `on_warning` with the name of a warning.
        `background` runs compressions that no client waits for.
        """
        self._conversations = conversations = ProxiedConversations(engine)
        self._pipeline = ProxyPipeline(engine, conversations, background)
        self._usage = UsageWriter(conversations.add_usage, on_usage)
        self._responses = engine.responses
        self._prefixes = PrefixCache()
        self._upstream = upstream
        self._find_namespace = find_namespace
        self._body_limit = body_limit
        self._on_warning = on_warning

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the proxy in an application."""
        return [_VersionRoute(version, self) for version in _VERSIONS]

    def cache_sizes(self) -> dict[str, int]:
        """Return the number of entries of each cache of this process."""
        return {**self._pipeline.cache_sizes(), **self._prefixes.sizes()}

    async def idle(self) -> None:
        """Wait until histories and usage are written."""
        await self._pipeline.idle()
        await self._usage.idle()

    async def close(self) -> None:
        """Stop background compressions, write what waits, and close the connections."""
        await self._pipeline.close()
        await self._usage.idle()
        await self._upstream.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, unless the client disconnects."""
        if scope["type"] == "websocket":
            await _refuse_websocket(send)
            return
        http = await read_http_request(scope, receive)
        if http is not None:
            answer = self._answer(http, scope, ClientResponse(send, scope))
            await run_while_connected(answer, scope, receive)

    async def _answer(self, http: HttpRequest, scope: Scope, client: ClientResponse) -> None:
        request: ProxyRequest | None = None
        try:
            request, warning = await self._read_request(http, scope)
            if request is None or warning is not None:
                recorded = None if http.is_count else request
                return await self._forward_unchanged(http, recorded, warning, client)
            if http.is_count:
                return await self._forward_count(http, request, client)
            forwarded = await self._pipeline.prepare(request)
            await self._forward(http, request, forwarded, client)
        except EnfoldError as error:
            if client.has_started:
                raise  # the connection is closed: the client notices that the body is incomplete
            namespace = request.namespace if request is not None else ""
            await client.send_whole(*error_response(error, http.upstream, namespace))

    async def _read_request(
        self, http: HttpRequest, scope: Scope
    ) -> tuple[ProxyRequest | None, str | None]:
        """Return the conversation request, and a warning if it is to be forwarded unchanged."""
        namespace = await self._find_namespace(scope)
        if http.wire is None:
            return None, None
        name = http.header(b"x-enfold-session")
        if name is not None:
            check_name("x-enfold-session", name)
        try:
            parsed = await self._parse(http, http.wire)
            if parsed is None:
                return None, TOO_LONG_TO_READ
            body, prefix = parsed
            model = http.model or body.field("model")
        except InputError:
            return None, NOT_UNDERSTOOD
        if not isinstance(model, str):
            return None, NOT_UNDERSTOOD
        client, session = client_name(http.named), client_session(http.named)
        if session is not None:
            namespace = await self._conversations.namespace_of(namespace, session)
        request = ProxyRequest(
            body,
            f"{http.wire.provider}:{model}",
            namespace,
            client,
            client_window(client, http.headers),
            session,
            name,
            may_recall=not http.wire.is_array_stream(http.path),
            connect=partial(http.connection, model, self._upstream.address(http.upstream)),
            call=partial(self._call_upstream, http),
        )
        if may_be_incomplete(body):
            return await self._complete(request, prefix)
        request.prefix = prefix
        return request, None if body.messages else NOT_UNDERSTOOD

    async def _complete(
        self, request: ProxyRequest, prefix: BodyPrefix | None
    ) -> tuple[ProxyRequest, str | None]:
        """Return the request with the messages that it only refers to, and a warning or None."""
        body, namespace, name = request.body, request.namespace, request.session
        completed = await complete_request(self._responses, namespace, body)
        if completed is None:
            if name is None and (conversation := provider_conversation_id(body)) is not None:
                request = replace(request, session=conversation_name(namespace, conversation))
            return request, HISTORY_NOT_VISIBLE
        if not completed.body.messages:
            return request, NOT_UNDERSTOOD
        if completed.body is body:
            request.prefix = prefix
            return request, None
        request = replace(
            request,
            body=completed.body,
            session=name or completed.session,
            provider_has_view=completed.provider_has_view,
        )
        return request, None

    async def _parse(
        self, http: HttpRequest, wire: Wire
    ) -> tuple[RequestBody, BodyPrefix | None] | None:
        """Return the body, cut into messages; None if it is too long to be read.

        Large bodies are read in turn in a thread, so that others are answered meanwhile.
        """
        raw = http.raw
        if b"content-encoding" in http.named:
            raw = await self._decompressed(http)
        if len(raw) < LARGE_BODY:
            parsed = self._prefixes.parse(wire, raw)
        else:
            async with http.turn(len(raw)):
                if await asyncio.to_thread(has_too_much_text, raw):
                    return None
                parsed = await asyncio.to_thread(self._prefixes.parse, wire, raw)
                if len(raw) > MAX_TEXT and await asyncio.to_thread(has_long_texts, parsed[0]):
                    return None
        return parsed if len(parsed[0].messages) <= MAX_MESSAGES else None

    async def _decompressed(self, http: HttpRequest) -> bytes:
        encoding = http.header(b"content-encoding") or ""
        return await asyncio.to_thread(unpacked, http.raw, encoding, self._body_limit)

    async def _forward_unchanged(
        self,
        http: HttpRequest,
        request: ProxyRequest | None,
        warning: str | None,
        client: ClientResponse,
    ) -> None:
        headers = [(b"x-enfold-warning", warning.encode())] if warning else []
        async with self._call_upstream(http) as response:
            await relay_response(response, headers, client, self._recorder(request, None, response))

    async def _forward_count(
        self, http: HttpRequest, request: ProxyRequest, client: ClientResponse
    ) -> None:
        """Let the provider count the tokens of the view that would be sent."""
        forwarded = await self._pipeline.prepare_count(request)
        is_unchanged = forwarded.raw is request.body.raw
        async with self._call_upstream(http, None if is_unchanged else forwarded.raw) as response:
            await relay_response(response, _response_headers(forwarded), client)

    async def _forward(
        self,
        http: HttpRequest,
        request: ProxyRequest,
        forwarded: ForwardedRequest,
        client: ClientResponse,
    ) -> None:
        """Forward the request; compress it and try again if the provider says it is too long."""
        is_unchanged = forwarded.raw is request.body.raw
        async with self._call_upstream(http, None if is_unchanged else forwarded.raw) as response:
            if response.status < BAD_REQUEST:
                return await self._relay(http, request, forwarded, response, client)
            body = await response.read()
        retry = None
        if is_overflow_response(response.status, body):
            await self._pipeline.learn_limit(request, body.decode("utf-8", "replace"))
            retry = await run_to_completion(self._pipeline.prepare_after_overflow(request))
        if retry is None:
            headers = [*response.headers, *_response_headers(forwarded)]
            return await client.send_whole(response.status, headers, body)
        async with self._call_upstream(http, retry.raw) as second:
            return await self._relay(http, request, retry, second, client)

    async def _relay(
        self,
        http: HttpRequest,
        request: ProxyRequest,
        forwarded: ForwardedRequest,
        response: UpstreamResponse,
        client: ClientResponse,
    ) -> None:
        """Relay the response; if the model may recall, the one that its replies are joined to."""
        relayed: RelayedResponse = response
        hidden_usage: Sequence[CallUsage] = ()
        if forwarded.recall is not None and response.status < BAD_REQUEST:
            loop = RecallLoop(forwarded.recall, partial(self._call_upstream, http))
            hidden_usage = loop.hidden_usage
            relayed = await loop.run(response)
        if forwarded.decision != "keep" and not is_stream(relayed):
            relayed = buffered = await buffer_response(relayed)
            recorded = RecordedResponse(request.body.wire, buffered.headers, [buffered.body])
            if self._warn_of_markers(forwarded, recorded):
                warnings = (*forwarded.warnings, MARKER_COPIED)
                forwarded = replace(forwarded, warnings=warnings)
        recorder = self._recorder(request, forwarded, relayed, hidden_usage)
        await relay_response(relayed, _response_headers(forwarded), client, recorder)
        self._pipeline.compress_after_reply(forwarded)

    def _warn_of_markers(self, forwarded: ForwardedRequest, response: RecordedResponse) -> bool:
        """Report tool calls that have a marker in their arguments; return True if there are any."""
        names = tools_with_marker(response)
        if names:
            self._on_warning(MARKER_COPIED)
            tools = ", ".join(sorted(set(names)))
            _log.warning("session %s: a marker in the arguments of %s", forwarded.session, tools)
        return bool(names)

    def _recorder(
        self,
        request: ProxyRequest | None,
        forwarded: ForwardedRequest | None,
        response: RelayedResponse,
        hidden_usage: Sequence[CallUsage] = (),
    ) -> ResponseRecorder | None:
        """Return the recorder of a response; None for errors and for other requests."""
        if request is None or response.status >= BAD_REQUEST:
            return None
        analysis = forwarded.analysis if forwarded is not None else None

        def on_close(recorded: RecordedResponse) -> None:
            if forwarded is not None and forwarded.decision != "keep" and is_stream(response):
                self._warn_of_markers(forwarded, recorded)
            session = request.session if forwarded is None else forwarded.session
            history = analysis.history if analysis is not None else None
            self._usage.add(
                ProxiedCall(
                    request.namespace, session, request.model, recorded, history, hidden_usage
                )
            )

        save: SaveReply | None = None
        if analysis is not None and can_be_continued(request.body):
            save = partial(self._save_reply, self._pipeline.save_reply, analysis)
        elif forwarded is None and provider_conversation_id(request.body) is not None:
            save = partial(self._save_reply, self._pipeline.save_provider_conversation, request)
        return ResponseRecorder(
            RecordedResponse(request.body.wire, response.headers), on_close, save
        )

    async def _save_reply(
        self, save: Callable[[Source, Reply], Coroutine[Any, Any, None]], of: Source, reply: Reply
    ) -> None:
        """Save the reply; if the store is slow, the client receives the end before it is saved."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SAVE_TIMEOUT):
                await run_to_completion(save(of, reply))

    def _call_upstream(
        self, http: HttpRequest, body: bytes | None = None
    ) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Send the request upstream as it came, or with another body."""
        headers = http.headers
        if http.wire is not None:
            # Responses to conversations are read here, so they must not be compressed.
            if b"accept-encoding" in http.named:
                headers = [each for each in headers if each[0] != b"accept-encoding"]
            headers = [*headers, (b"accept-encoding", b"identity")]
        if body is not None:
            headers = [each for each in headers if each[0] != b"content-encoding"]
        raw = (http.raw if body is None else body) or None
        if http.load is not None:
            http.load.stop_computing()
        return self._upstream.call(http.upstream, http.method, http.path, headers, raw)


async def relay_response(
    response: RelayedResponse,
    headers: Iterable[Header],
    client: ClientResponse,
    recorder: ResponseRecorder | None = None,
) -> None:
    """Relay the response to the client, with more headers, and record it on the way."""
    length, body = response.length, response.whole_body()
    if body is not None:
        if recorder is not None:
            await _record_whole(recorder, body)
        await client.send_whole(response.status, [*response.headers, *headers], body)
        return
    await client.start(response.status, [*response.headers, *headers], length)
    held: list[bytes] = []
    bytes_left = -1 if length is None else length
    try:
        async for chunk in response.chunks():
            bytes_left -= len(chunk)
            # The last chunk is sent together with the end: a short response takes one write.
            if (recorder is not None and recorder.feed(chunk)) or not bytes_left:
                held.append(chunk)
            else:
                await client.write(chunk)
        if recorder is not None:
            if length is None and _may_be_broken_off(response) and not recorder.is_complete():
                raise response.broken_off()
            await recorder.finish()
    finally:
        if recorder is not None:
            recorder.close()
    await client.end(b"".join(held))


async def _record_whole(recorder: ResponseRecorder, body: bytes) -> None:
    try:
        recorder.feed(body)
        await recorder.finish()
    finally:
        recorder.close()


def _may_be_broken_off(response: RelayedResponse) -> TypeGuard[UpstreamResponse]:
    return isinstance(response, UpstreamResponse) and response.ends_with_connection


class _VersionRoute(BaseRoute):
    """All paths of one version of the providers' interfaces, matched by prefix."""

    def __init__(self, version: str, app: ASGIApp) -> None:
        self.path = f"/{version}/{{rest:path}}"
        self._prefix = f"/{version}/"
        self._app = app

    def url_path_for(self, name: str, /, **path_params: Any) -> NoReturn:
        """Raise an error: the route has no name."""
        raise NoMatchFound(name, path_params)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match requests whose path begins with the version."""
        if scope["type"] in {"http", "websocket"} and scope["path"].startswith(self._prefix):
            return Match.FULL, {"route": self}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        await self._app(scope, receive, send)


async def _refuse_websocket(send: Send) -> None:
    """Refuse a WebSocket so that the client uses HTTP at once.

    Codex tries a WebSocket first. It repeats the attempt after most statuses, not after this one.
    """
    headers = [(b"upgrade", b"HTTP/1.1"), (b"content-type", b"text/plain")]
    start = {"type": "websocket.http.response.start", "status": 426, "headers": headers}
    await send(start)
    await send({"type": "websocket.http.response.body", "body": b"enfold: use HTTP\n"})


async def open_proxy_namespaces(engine: Engine) -> ProxyNamespaces:
    """Return the namespaces of a store: the same in every process that serves it."""
    return ProxyNamespaces(await engine.access.namespace_secret())


@asynccontextmanager
async def open_proxy(
    engine: Engine,
    *,
    body_limit: int = BODY_LIMIT,
    read_timeout: float = READ_TIMEOUT,
    on_usage: Callable[[UsageEvent], None] | None = None,
    on_warning: Callable[[str], None] = _log.debug,
) -> AsyncIterator[Proxy]:
    """Open the proxy in front of the upstream servers that the environment names."""
    proxy = Proxy(
        engine,
        Upstream(upstreams(), read_timeout=read_timeout),
        await open_proxy_namespaces(engine),
        body_limit=body_limit,
        on_usage=on_usage,
        on_warning=on_warning,
    )
    listing = asyncio.create_task(_list_client_sessions(engine))
    try:
        yield proxy
    finally:
        listing.cancel()
        with suppress(asyncio.CancelledError):
            await listing
        await proxy.close()


async def _list_client_sessions(engine: Engine) -> None:
    try:
        await engine.access.list_client_sessions()
    except StoreError as error:
        _log.warning("older sessions of clients are not listed for the owner yet: %s", error)


def _response_headers(forwarded: ForwardedRequest) -> list[Header]:
    headers = [
        (b"x-enfold-decision", forwarded.decision.encode()),
        (b"x-enfold-tokens-before", b"%d" % forwarded.tokens_before),
        (b"x-enfold-tokens-after", b"%d" % forwarded.tokens_after),
    ]
    if forwarded.session:
        headers.append((b"x-enfold-session", forwarded.session.encode("latin-1", "replace")))
    if forwarded.warnings:
        warnings = ", ".join(forwarded.warnings)
        headers.append((b"x-enfold-warning", warnings.encode("latin-1", "replace")))
    return headers
