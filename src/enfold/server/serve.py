"""Run the server: listen, serve until a signal, finish the requests in progress."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from enfold.engine import Engine
from enfold.engine.state import prepare_process
from enfold.errors import ConfigError, TokenCountError
from enfold.server.access import caller_in, is_loopback
from enfold.server.app import App, create_app, give_sample
from enfold.server.connections import PatientProtocol
from enfold.server.metrics import Metrics
from enfold.server.proxy.routes import open_proxy
from enfold.server.request_log import log_to_standard_error
from enfold.settings import ServerSettings, database_url, server_identity, server_settings
from enfold.text.harness import use_small_memo
from enfold.tokens import use_fastest_library_only, use_small_memos, warm
from enfold.tokens.apart import use_process
from enfold.wiring import open_engine

DRAIN_SECONDS = 30
"""The time that requests in progress have to finish after the signal."""
_KEEP_ALIVE_SECONDS = 75
_BACKLOG = 2048
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of glibc's mallopt: M_TRIM_THRESHOLD, M_MMAP_THRESHOLD and M_ARENA_MAX."""
_ARENAS = 2
"""Heaps that all threads share: the interpreter runs one thread at a time, so none waits."""
_KEPT_BUFFER, _KEPT = 8 << 20, 16 << 20
"""Bytes: a larger freed buffer goes back to the system; at most this free memory is kept."""
_WARM_DELAY = 1.0
"""Seconds from the start until the fastest tokenizer is loaded."""
_NEW_OBJECTS = 10_000
"""New objects after which garbage is collected; Python's 700 are those of a few requests."""
SWITCH_SECONDS = 0.0005
"""Seconds for which a thread may compute before another one takes its turn."""
_NO_UI = (
    "the web UI is not installed; only the API and the proxy are served. "
    "Install it with pip install 'enfold[ui]', or start with --no-ui"
)
_log = logging.getLogger("enfold.server")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """The options of `enfold serve`."""

    host: str = "127.0.0.1"
    port: int = 8787
    """0 for any free port."""
    db: str | None = None
    ui: bool = True
    sample: bool = False
    """Store a sample conversation if the store is empty."""
    fd: int | None = None
    """The descriptor of an inherited socket that listens, in place of host and port."""
    until_eof: bool = False
    """Stop at the end of standard input: the process that holds the other end has ended."""
    quiet: bool = False
    """Log warnings and errors only, as plain text."""


async def _load_tokenizer() -> None:
    """Load the fastest tokenizer: requests would wait for it in the middle."""
    await asyncio.sleep(_WARM_DELAY)
    with suppress(ConfigError, TokenCountError):  # logged, and raised again for the first count
        await asyncio.to_thread(warm)
        await asyncio.to_thread(_return_free_memory)


class Server(uvicorn.Server):
    """The web server; it drains the app before it waits for requests to finish."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: App,
        ready: Callable[[], None],
        *,
        load_api: bool = True,
        until_eof: bool = False,
    ) -> None:
        """`load_api` loads the API before the server is ready, not with its first request."""
        super().__init__(config)
        self._app = app
        self._ready = ready
        self._load_api = load_api
        self._until_eof = until_eof

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen."""
        await super().startup(sockets)
        if self._until_eof:
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self._read_input)
        if self._load_api:
            await self._app.load_api()  # the proxy answers meanwhile
        _collect_garbage_from_now_on()
        self._ready()
        self._warming = asyncio.create_task(_load_tokenizer())

    def _read_input(self) -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the event streams and wait for the other requests."""
        self._warming.cancel()
        self._app.drain()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal. It is not raised again: the engine must still be closed."""
        handled = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self._stop) for each in handled}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _stop(self, sent: int, _frame: FrameType | None) -> None:
        """Stop; the second Ctrl+C does not wait for requests."""
        self.force_exit = self.should_exit and sent == signal.SIGINT
        self.should_exit = True


def run(options: ServeOptions, ready: Callable[[str], None]) -> None:
    """Serve until a signal; call `ready` with the address when the server answers."""
    log_to_standard_error(quiet=options.quiet)
    _keep_some_memory()
    use_fastest_library_only()
    use_small_memos()
    use_small_memo()
    use_process(prepare_process)
    given = server_settings()
    if options.fd is not None:
        listener = socket.socket(fileno=options.fd)
    else:
        listener = _listen(options.host, options.port)
    try:
        factory = uvicorn.Config("", loop="auto", log_config=None).get_loop_factory()
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(_serve(options, given, listener, ready))
    finally:
        listener.close()


def _collect_garbage_from_now_on() -> None:
    """Collect garbage among new objects only: all others stay, and would delay requests."""
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    gc.enable()


def _keep_some_memory() -> None:
    """Set how much freed memory the C library keeps.

    Taking memory from the system for every long request costs as much as the rest of the request.
    By default the library adapts the amount and keeps too much. Only glibc has this function.
    """
    tune = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if tune is not None:
        tune(_MMAP_THRESHOLD, _KEPT_BUFFER)
        tune(_TRIM_THRESHOLD, _KEPT)
        tune(_ARENA_MAX, _ARENAS)


def _return_free_memory() -> None:
    """Give free memory back to the system: loading needs more than the loaded parts keep."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


async def _serve(
    options: ServeOptions,
    given: ServerSettings,
    listener: socket.socket,
    ready: Callable[[str], None],
) -> None:
    metrics = Metrics()
    async with (
        open_engine(options.db) as engine,
        open_proxy(
            engine,
            body_limit=given.body_limit,
            read_timeout=given.read_timeout,
            on_usage=metrics.used,
            on_warning=metrics.warned,
        ) as proxy,
        _open_ui(engine, wanted=options.ui) as ui,
    ):
        metrics.cache_sizes = proxy.cache_sizes
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
        app.health.identity |= server_identity(options.db or database_url())
        # Threads that plan compressions hand over sooner, so that requests do not wait for them.
        sys.setswitchinterval(SWITCH_SECONDS)
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
        server = Server(
            config,
            app,
            lambda: ready(_address(options.host, listener)),
            # A server for the proxy alone never needs it, and it takes 11 MB.
            load_api=ui is not None,
            until_eof=options.until_eof,
        )
        await server.serve([listener])


@asynccontextmanager
async def _open_ui(engine: Engine, *, wanted: bool) -> AsyncIterator[ASGIApp | None]:
    """Open the web UI; yield None if it is not wanted or not installed."""
    if wanted and not has_ui():
        _log.warning("%s", _NO_UI)
    if not (wanted and has_ui()):
        yield None
        return
    # The UI is slow to load, so it is imported only if it is served.
    ui = import_module("enfold.ui")
    host = import_module("fastapi").FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    async with ui.open_ui(engine, host, caller_in):
        yield host


def has_ui() -> bool:
    """True if the web UI is installed."""
    return find_spec("nicegui") is not None


async def admit(engine: Engine, host: str, given: ServerSettings) -> bool:
    """Store the environment's token; return True if requests need a token.

    On other addresses than loopback they always do, so at least one token must exist.
    """
    if given.token is not None:
        await engine.access.put_first_token(given.token)
        return True
    if is_loopback(host):
        return False
    if not await engine.access.tokens():
        raise ConfigError(
            f"host {host}: other machines can reach it, so an access token is needed; set "
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
                f"port {port} on {host} is in use; choose another with --port"
            ) from None
        raise ConfigError(f"cannot listen on {host}, port {port}: {error.strerror}") from None
    return listener


def _address(host: str, listener: socket.socket) -> str:
    port = listener.getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
