"""The application: all routes behind the same layers.

The layers, from the outermost: tracing (ids, log, metrics), the guard against foreign web pages,
access, rates, load, bodies. Then the routes: those of the proxy first, because they must be fast,
then health, the API and its documentation. All other paths belong to the web UI.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from starlette.datastructures import MutableHeaders
from starlette.routing import BaseRoute, Match, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.engine import Engine
from enfold.modelconfig import DEFAULT_MODEL
from enfold.sample import AGENT_SESSION, AGENT_TITLE, SESSION, TITLE, read_sample
from enfold.server.access import Access, Guard, Rates, Segments, SignIn, Tokens, allowed_hosts
from enfold.server.bodies import Bodies
from enfold.server.feed import Feeds
from enfold.server.load import LoadGuard
from enfold.server.metrics import Health, Metrics
from enfold.server.request_log import Audit, Tracing, log_compression
from enfold.settings import ServerSettings

API_BODY_LIMIT = 16 * 2**20
"""The largest body of the API, in bytes; as objects its messages take far more memory."""
_API_PATHS = ("/api", "/docs", "/openapi.json")
SOCKET = "/_nicegui_ws/"
"""The path of the web UI's WebSocket."""

_HEADERS = {
    # Nothing is loaded from other servers, whatever a message contains. NiceGUI has inline scripts
    # and compiles templates, hence the two exceptions.
    "content-security-policy": "default-src 'self'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws: wss:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Front:
    """Sends requests to the API or to the web UI."""

    def __init__(self, api: ASGIApp, ui: ASGIApp) -> None:
        self._api = api
        self._ui = Segments(ui)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await self._ui(scope, receive, send)
        elif scope["path"] in _API_PATHS or scope["path"].startswith(("/api/", SOCKET)):
            # The API answers 404 on the socket's path: HTTP polling in place of the WebSocket
            # would pass the check of the page's origin and delay the server's end.
            await self._api(scope, receive, send)
        else:
            await self._ui(scope, receive, _with_headers(send))


class _ProxyFirst:
    """Tries the routes of the proxy before the rest."""

    def __init__(self, routes: Sequence[BaseRoute], rest: ASGIApp) -> None:
        self._routes = routes
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        for route in self._routes:
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                await route.handle(scope, receive, send)
                return
        await self._rest(scope, receive, send)


class _Api:
    """The API. To import its modules takes long, so they are loaded after the start."""

    def __init__(self, create: Callable[[], ASGIApp]) -> None:
        self._create = create
        self._app: ASGIApp | None = None
        self._loading: asyncio.Task[ASGIApp] | None = None

    async def load(self) -> None:
        """Load the API in a thread, once."""
        if self._app is None:
            if self._loading is None:
                self._loading = asyncio.create_task(asyncio.to_thread(self._load))
            # Other requests may wait for the same result: a cancelled one must not cancel it.
            self._app = await asyncio.shield(self._loading)

    def _load(self) -> ASGIApp:
        app = self._create()
        gc.freeze()  # the modules stay, so the garbage collector need not look at them again
        return app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the first ones wait until the API is loaded."""
        while self._app is None:
            await self.load()
        await self._app(scope, receive, send)


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


@dataclass(frozen=True, slots=True)
class App:
    """The application and the parts that the server stops."""

    asgi: ASGIApp
    health: Health
    feeds: Feeds
    metrics: Metrics = field(repr=False)
    load_api: Callable[[], Awaitable[None]] = field(repr=False)
    """Loads what the first request of the API would wait for."""

    def drain(self) -> None:
        """Report that the server stops, and end the event streams."""
        self.health.draining = True
        self.feeds.close()


def create_app(
    engine: Engine,
    *,
    host: str = "127.0.0.1",
    serving: ServerSettings | None = None,
    token_required: bool = False,
    forwarding: Sequence[BaseRoute] = (),
    ui: ASGIApp | None = None,
    metrics: Metrics | None = None,
) -> App:
    """Return the application over an engine.

    `host` is the address it listens on: on loopback, only requests to this machine's names are
    answered. `forwarding` are the routes of the proxy, which counts into the same `metrics`. `ui`
    gets all other paths; with `token_required` its users sign in.
    """
    options = serving or ServerSettings()
    metrics = metrics or Metrics()
    engine.events.subscribe(metrics.listen)
    engine.events.subscribe(log_compression)
    health = Health(engine, metrics, token_required=token_required)
    feeds = Feeds(engine.events)
    tokens = Tokens(engine.access)
    api_limit = min(options.body_limit, API_BODY_LIMIT)

    def create() -> ASGIApp:
        from enfold.server.api.app import create_api

        return Audit(Segments(create_api(engine, feeds, tokens, body_limit=api_limit)), engine)

    api = _Api(create)
    sign_in = None if ui is None else SignIn(tokens)
    routes = [*health.routes(), *(sign_in.routes() if sign_in else ())]
    rest: ASGIApp = api if ui is None else Front(api, ui)
    inner: ASGIApp = _ProxyFirst(forwarding, Router(routes, redirect_slashes=False, default=rest))
    inner = LoadGuard(Bodies(inner, options.body_limit))
    if options.rate_limit is not None:
        inner = Rates(inner, options.rate_limit)
    inner = Access(inner, tokens, required=token_required, sign_in=sign_in)
    inner = Guard(inner, allowed_hosts(host, options.hosts))
    return App(Tracing(inner, metrics), health, feeds, metrics, api.load)


SAMPLES: Mapping[str, tuple[str, Literal["festival", "agent"], int]] = {
    AGENT_SESSION: (AGENT_TITLE, "agent", 4_600),
    SESSION: (TITLE, "festival", 13_000),
}
"""Session -> title, conversation and window; the windows are small, so they are nearly full."""


async def give_sample(engine: Engine) -> bool:
    """Store the sample conversations if the store is empty; return True if they were stored.

    A sample that was deleted is not stored again.
    """
    if await engine.sessions(limit=1) or not await engine.is_first_time("welcome", "sample"):
        return False
    for id, (title, name, window) in SAMPLES.items():
        sample = read_sample(name)
        session = await engine.session(id, title=title, model=DEFAULT_MODEL)
        await session.configure(window=window)
        stored = await session.append(*sample.messages)
        for place, branch in sample.branches:
            await session.append(*branch, after=stored[place - 1])
        await session.switch(stored[-1])
    return True
