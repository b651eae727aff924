"""Serving: from an address to a server that runs until it is told to stop, and then finishes."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import FrameType

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from enfold.engine import Engine
from enfold.errors import ConfigError
from enfold.server.access import is_loopback
from enfold.server.app import App, create_app, give_sample
from enfold.server.callers import caller_in
from enfold.server.connections import PatientProtocol
from enfold.server.metrics import Metrics
from enfold.server.proxy.routes import open_proxy
from enfold.server.request_log import log_to_standard_error
from enfold.settings import ServerSettings, server_settings
from enfold.wiring import open_engine

DRAIN_SECONDS = 30
"""How long requests may go on after the server was told to stop."""
_KEEP_ALIVE_SECONDS = 75
_BACKLOG = 2048
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Their names in glibc begin with M_."""
_KEPT_BUFFER, _KEPT = 8 << 20, 16 << 20
"""Bytes of a buffer that is given back when it is free, and of free memory that is kept."""
_NO_UI = (
    "the web UI is not installed, the API and the proxy are served without it; "
    "pip install 'enfold[ui]' installs it, --no-ui does without"
)
_log = logging.getLogger("enfold.server")


@dataclass(frozen=True, slots=True)
class Options:
    """What `enfold serve` can be told."""

    host: str = "127.0.0.1"
    port: int = 8787
    """0 for any that is free."""
    db: str | None = None
    ui: bool = True
    sample: bool = False
    """Begin with a sample conversation, if nothing is stored yet."""


class Server(uvicorn.Server):
    """The web server, which tells the app before it waits for requests to end."""

    def __init__(self, config: uvicorn.Config, app: App, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let what is under way finish, and end what would last for ever."""
        self._app.drain()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal. It is not raised again afterwards: the engine is still to be closed."""
        handled = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self._stop) for each in handled}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _stop(self, sent: int, _frame: FrameType | None) -> None:
        """The second Ctrl+C does not wait."""
        self.force_exit = self.should_exit and sent == signal.SIGINT
        self.should_exit = True


def run(options: Options, ready: Callable[[str], None]) -> None:
    """Serve until a signal; `ready` is told the address once it answers."""
    log_to_standard_error()
    _keep_some_memory()
    given = server_settings()
    listener = _listen(options.host, options.port)
    try:
        factory = uvicorn.Config("", loop="auto", log_config=None).get_loop_factory()
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(_serve(options, given, listener, ready))
    finally:
        listener.close()


def _keep_some_memory() -> None:
    """Keep what a long body needs, and give back what many of them at once took.

    To take memory from the system anew for every long request costs as much as all the rest of it.
    The C library finds out by itself how much to keep, and keeps too much. Only glibc has this.
    """
    tune = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if tune is not None:
        tune(_MMAP_THRESHOLD, _KEPT_BUFFER)
        tune(_TRIM_THRESHOLD, _KEPT)


async def _serve(
    options: Options, given: ServerSettings, listener: socket.socket, ready: Callable[[str], None]
) -> None:
    metrics = Metrics()
    async with (
        open_engine(options.db) as engine,
        open_proxy(
            engine, body_limit=given.body_limit, on_usage=metrics.used, on_warning=metrics.warned
        ) as proxy,
        _open_ui(engine, wanted=options.ui) as ui,
    ):
        if options.sample:
            await give_sample(engine)
        app = create_app(
            engine,
            host=options.host,
            serving=given,
            token_required=await admit(engine, options.host, given),
            forwarding=proxy.routes(),
            ui=ui,
            metrics=metrics,
        )
        # What is there now stays: looking for garbage in it would hold up requests now and then.
        gc.collect()
        gc.freeze()
        config = uvicorn.Config(
            app.asgi,
            http=PatientProtocol,
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=DRAIN_SECONDS,
            backlog=_BACKLOG,
        )
        await Server(config, app, lambda: ready(_address(options.host, listener))).serve([listener])


@asynccontextmanager
async def _open_ui(engine: Engine, *, wanted: bool) -> AsyncIterator[ASGIApp | None]:
    """The web UI; None where it is not wanted, or not installed, and the rest is served then."""
    if wanted and not has_ui():
        _log.warning("%s", _NO_UI)
    if not (wanted and has_ui()):
        yield None
        return
    # A door of its own, and slow to load: only whoever wants it pays for it.
    ui = import_module("enfold.ui")
    host = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    async with ui.open_ui(engine, host, caller_in):
        yield host


def has_ui() -> bool:
    """Whether the web UI is installed."""
    return find_spec("nicegui") is not None


async def admit(engine: Engine, host: str, given: ServerSettings) -> bool:
    """Let the environment's token in, and say whether one is required.

    Beyond this machine nobody is let in without one, so there must be one.
    """
    if given.token is not None:
        await engine.access.put_first_token(given.token)
        return True
    if is_loopback(host):
        return False
    if not await engine.access.tokens():
        raise ConfigError(
            f"host {host}: others can reach this address, so an access token is needed; set "
            "ENFOLD_TOKEN to a long random text, or listen on 127.0.0.1"
        )
    return True


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, OverflowError) as error:
        raise ConfigError(f"host {host}, port {port}: {error}") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} on {host} is in use; stop what uses it, or choose another with --port"
            ) from None
        raise ConfigError(f"cannot listen on {host}, port {port}: {error.strerror}") from None
    return listener


def _address(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
