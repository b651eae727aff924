"""The local server that an agent's requests go through: reused if it runs, else started.

A server that is started here listens on a socket that this process opens, so its address is known
at once. It ends with this process, however that ends: its standard input is a pipe from here.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from enfold.amounts import dollars, number
from enfold.errors import ConfigError, InputError, UnavailableError
from enfold.jsontext import loads
from enfold.settings import server_identity

HOST = "127.0.0.1"
DEFAULT_PORT = 8787
"""The port of `enfold serve`, where a server to reuse is looked for."""
SERVER_SETTINGS = {"ENFOLD_PROXY_CLIENT_KEY": "true", "ENFOLD_ON_FAILURE": "local"}
"""Settings of a server for agents, unless others are set. The agent's model writes the summaries;
if it fails, the built-in summarizer does, so that the agent is not stopped."""
_START_SECONDS = 120.0
_STOP_SECONDS = 40.0
"""A little longer than the server waits for requests in progress."""
_ANSWER_SECONDS = 10.0
_PAUSE = 0.05
_MAX_LOG_BYTES = 8 << 20
_USAGE_SECONDS = 1.5
"""Time for the usage of the last replies to be recorded."""
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)

_opener = build_opener(ProxyHandler({}))
"""Requests to this machine never take an HTTP proxy."""


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The requests of a period, its compressions and their savings."""

    requests: int = 0
    compressions: int = 0
    tokens: int = 0
    """Tokens that were not sent again."""
    dollars: float | None = 0.0
    """None if a price is unknown."""
    bill: float | None = None
    """The cost of all calls; None if it is unknown."""
    bill_without: float | None = None
    """The estimated cost without compressions; None if it is unknown."""

    def __str__(self) -> str:
        amounts = [number(self.requests, "request"), number(self.compressions, "compression")]
        if self.compressions:
            price = "price unknown" if self.dollars is None else dollars(self.dollars)
            amounts.append(f"{self.tokens:,} tokens saved ({price})")
        if self.compressions and self.bill and self.bill_without:
            without = dollars(self.bill_without)
            amounts.append(f"{dollars(self.bill)} paid instead of {without}")
        return ", ".join(amounts)


class LocalServer:
    """A server on loopback that answers; it measures what is saved from now on."""

    def __init__(self, address: str, *, is_reused: bool) -> None:
        self.address = address
        self.is_reused = is_reused
        self._start = int(time() * 1000)
        _, self._replies_before = self._counters()

    def figures(self) -> RunFigures:
        """Return the savings since this object was made."""
        deadline = monotonic() + _USAGE_SECONDS
        requests, replies = self._counters()
        # Some requests have no usage, such as a count of tokens.
        while replies < requests and monotonic() <= deadline:
            sleep(_PAUSE)
            requests, replies = self._counters()
        activity = loads(self._read(f"/api/activity?since={self._start}"))
        total = activity["total"]
        return RunFigures(
            replies - self._replies_before,
            total["compressions"],
            total["spared"],
            None if total["unknown"] else total["dollars"],
            activity["bill"],
            activity["bill_without"],
        )

    def _counters(self) -> tuple[int, int]:
        """Return the proxied requests that were answered, and the replies with recorded usage.

        The usage of a reply is recorded up to a second after the answer.
        """
        requests = replies = 0
        proxied = ('method="POST"', 'route="/v1', 'status="200"')
        for name, labels, value in _SAMPLE.findall(self._read("/metrics")):
            if name == "enfold_replies_total":
                replies += int(float(value))
            elif name == "enfold_requests_total" and all(part in labels for part in proxied):
                requests += int(float(value))
        return requests, replies

    def _read(self, path: str) -> str:
        status, text = _get(f"{self.address}{path}")
        if status != HTTPStatus.OK:
            raise UnavailableError(f"the local server answers {status} at {path}")
        return text


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a local server."""

    db: str
    port: int | None
    """None: the port of `enfold serve` to reuse one, any free port to start one."""
    log: Path
    """The file to which a started server writes its log."""
    ui: bool = True


@contextmanager
def open_server(environment: Mapping[str, str], options: ServerOptions) -> Iterator[LocalServer]:
    """Yield a server over the database: one that runs, else one that runs until the end.

    `environment` is the server's; its upstreams count when a running server is compared.
    """
    variables = {**SERVER_SETTINGS, **environment}
    address = f"http://{HOST}:{options.port or DEFAULT_PORT}"
    if _can_be_reused(address, variables, options.db):
        yield LocalServer(address, is_reused=True)
        return
    with _listen(options.port) as listener:
        address = f"http://{HOST}:{listener.getsockname()[1]}"
        process = _start(listener, variables, options)
    try:
        _wait_until_ready(process, address, options.log)
        yield LocalServer(address, is_reused=False)
    finally:
        _stop(process)


def _can_be_reused(address: str, variables: Mapping[str, str], db: str) -> bool:
    """True if a server with the same version, store and upstreams answers at the address.

    It must also need no access token, and let the client's model write summaries.
    """
    try:
        state = read_server_state(address)
    except (UnavailableError, InputError):
        return False
    wanted = {**server_identity(db, variables), "token_required": False, "client_key": True}
    return bool(state.get("server") == wanted)


def read_server_state(address: str) -> dict[str, Any]:
    """Return what a server of enfold at the address reports of itself.

    Raises `UnavailableError` or `InputError` if another program or none answers there.
    """
    status, text = _get(f"{address}/readyz")
    state = loads(text)
    if status != HTTPStatus.OK or not isinstance(state, dict) or "server" not in state:
        raise UnavailableError(f"no server of enfold is ready at {address}")
    return state


def is_port_free(port: int) -> bool:
    """True if a server can listen on the port of this machine."""
    try:
        with socket.create_server((HOST, port)):
            return True
    except OSError:
        return False


def _listen(port: int | None) -> socket.socket:
    try:
        return socket.create_server((HOST, port or 0), backlog=2048)
    except OSError as error:
        raise ConfigError(
            f"port {port} on {HOST} cannot be used: {error.strerror}; choose another with --port, "
            "or leave it out"
        ) from None


def _start(
    listener: socket.socket, variables: Mapping[str, str], options: ServerOptions
) -> subprocess.Popen[bytes]:
    descriptor = listener.fileno()
    arguments = ["--db", options.db, "--fd", str(descriptor), "--until-eof"]
    if not options.ui:
        arguments.append("--no-ui")
    log = options.log
    # The log does not go to the terminal: the agent draws there.
    mode = "wb" if log.exists() and log.stat().st_size > _MAX_LOG_BYTES else "ab"
    with log.open(mode) as output:
        # In a session of its own: Ctrl+C on the terminal is for the agent.
        return subprocess.Popen(
            [sys.executable, "-m", "enfold.cli", "serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=output,
            env=dict(variables),
            pass_fds=(descriptor,),
            start_new_session=True,
        )


def _wait_until_ready(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = monotonic() + _START_SECONDS
    while process.poll() is None:
        with suppress(UnavailableError):
            if _get(f"{address}/readyz")[0] == HTTPStatus.OK:
                return
        if monotonic() > deadline:
            raise UnavailableError(f"the local server did not start in time; its log is {log}")
        sleep(_PAUSE)
    with log.open(encoding="utf-8", errors="replace") as lines:
        last = "".join(deque(lines, 1)).strip().removeprefix("enfold: ")
    raise ConfigError(f"the local server did not start: {last} (log: {log})")


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _get(url: str) -> tuple[int, str]:
    """Return status and text of an answer; raise `UnavailableError` if there is none."""
    try:
        with _opener.open(url, timeout=_ANSWER_SECONDS) as answer:
            return answer.status, answer.read().decode("utf-8", "replace")
    except URLError as error:
        if (status := getattr(error, "code", None)) is not None:
            return status, ""
        raise UnavailableError(f"{url}: {error.reason}") from None
    except OSError as error:
        raise UnavailableError(f"{url}: {error}") from None
