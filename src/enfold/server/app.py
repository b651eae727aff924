"""The app: one ASGI application made of parts, with the same layers around all of them.

From the outside in: tracing (ids, log, figures), the guard against foreign pages, access (who
calls), rates, bodies. Inside are the routes: whatever forwards to a provider comes first, because
that is what must be quick, then health, then the API and its page. What is left is the web UI's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.engine import Engine
from enfold.sample import TITLE, sample_messages
from enfold.server.access import Access, Guard, Rates, SignIn, Tokens, allowed_hosts
from enfold.server.api.app import create_api
from enfold.server.bodies import Bodies
from enfold.server.feed import Feeds
from enfold.server.headers import Segments
from enfold.server.metrics import Health, Metrics
from enfold.server.request_log import Audit, Tracing
from enfold.settings import ServerSettings

_OF_THE_API = ("/api", "/docs", "/openapi.json")
SOCKET = "/_nicegui_ws/"
"""Where windows connect."""

_HEADERS = {
    # Nothing is loaded from elsewhere, whatever a message says. The library's own pages have their
    # scripts in them and make templates into code, hence the two exceptions.
    "content-security-policy": "default-src 'self'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws: wss:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Front:
    """Gives the API what is its own, and the rest to the web UI."""

    def __init__(self, api: ASGIApp, ui: ASGIApp) -> None:
        self._api = api
        self._ui = Segments(ui)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await self._ui(scope, receive, send)
        elif _is_of_the_api(scope["path"]) or scope["path"].startswith(SOCKET):
            # A window that asks again and again, for want of a socket, would be let in by any
            # page's origin and would hold up the server's end.
            await self._api(scope, receive, send)
        else:
            await self._ui(scope, receive, _with_headers(send))


def _is_of_the_api(path: str) -> bool:
    return path in _OF_THE_API or path.startswith("/api/")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


HERE = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class App:
    """The application, and what must be told when the server stops."""

    asgi: ASGIApp
    health: Health
    feeds: Feeds
    metrics: Metrics = field(repr=False)

    def drain(self) -> None:
        """Nothing new is to come, and what would last for ever ends."""
        self.health.draining = True
        self.feeds.close()


def create_app(
    engine: Engine,
    *,
    host: str = HERE,
    serving: ServerSettings | None = None,
    token_required: bool = False,
    forwarding: Sequence[BaseRoute] = (),
    ui: ASGIApp | None = None,
    metrics: Metrics | None = None,
) -> App:
    """The application over an engine. `forwarding` are the routes that go on to providers.

    `host` is where it listens: on loopback only names of this machine are answered to. `ui` has
    everything that is nobody else's; where a token is needed, people sign in with it. `metrics` are
    those of others who count too.
    """
    options = serving or ServerSettings()
    metrics = metrics or Metrics()
    engine.events.subscribe(metrics.listen)
    health = Health(engine, metrics)
    feeds = Feeds(engine.events)
    tokens = Tokens(engine.access)
    api = Audit(Segments(create_api(engine, feeds, tokens, body_limit=options.body_limit)), engine)
    sign_in = None if ui is None else SignIn(tokens)
    routes = [*forwarding, *health.routes(), *(sign_in.routes() if sign_in else ())]
    rest: ASGIApp = api if ui is None else Front(api, ui)
    inner: ASGIApp = Router(routes, redirect_slashes=False, default=rest)
    inner = Bodies(inner, options.body_limit)
    if options.rate_limit is not None:
        inner = Rates(inner, options.rate_limit)
    inner = Access(inner, tokens, required=token_required, sign_in=sign_in)
    inner = Guard(inner, allowed_hosts(host, options.hosts))
    return App(Tracing(inner, metrics), health, feeds, metrics)


SAMPLE = "sample"
"""The session's name."""
_DAYS = 9
"""How long it is: most of the window of the model that is assumed where none is named."""
_SCOPE, _GIVEN = "welcome", "sample"
"""Where it is remembered that the sample was given."""


async def give_sample(engine: Engine) -> bool:
    """Put the sample conversation into an empty store; return whether it was put there.

    A sample that was deleted is not put there again.
    """
    if await engine.sessions(limit=1) or not await engine.is_first_time(_SCOPE, _GIVEN):
        return False
    session = await engine.session(SAMPLE, title=TITLE)
    await session.append(*sample_messages(_DAYS))
    return True
