"""The app: one ASGI application made of parts, with the same layers around all of them.

From the outside in: tracing (ids, log, figures), the guard against foreign pages, access (who
calls), rates, bodies. Inside are the routes: whatever forwards to a provider comes first, because
that is what must be quick, then health, then the API and its page. What is left is the web UI's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp

from enfold.engine import Engine
from enfold.server.access import Access, Tokens
from enfold.server.api import create_api
from enfold.server.audit import Audit
from enfold.server.bodies import Bodies
from enfold.server.feed import Feeds
from enfold.server.front import Front
from enfold.server.guard import Guard, allowed_hosts
from enfold.server.health import Health
from enfold.server.metrics import Metrics
from enfold.server.rates import Rates
from enfold.server.segments import Segments
from enfold.server.signin import SignIn
from enfold.server.tracing import Tracing
from enfold.settings import Serving

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
    serving: Serving | None = None,
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
    options = serving or Serving()
    metrics = metrics or Metrics()
    engine.events.subscribe(metrics.listen)
    health = Health(engine, metrics)
    feeds = Feeds(engine.events)
    tokens = Tokens(engine.store)
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
