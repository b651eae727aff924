"""The PostgreSQL engine: address, connections and translated errors."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from enfold.errors import ConfigError, StoreError, StoreUnavailableError
from enfold.store.database import EngineName

if TYPE_CHECKING:
    from psycopg import Connection

_SECRETS = frozenset({"password", "sslpassword"})
_HIDDEN = "***"

_PREPARED = 200
"""Prepared statements per connection: more than there are queries, so each is prepared once."""

_PLANNING = (
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_seqscan", "off"),
    ("jit", "off"),
)
"""Every query finds a few rows by an index. Without these settings the planner may take a table for
small, and a query that walks a tree would read the whole table at every step."""

_UNAVAILABLE = {
    "08": "the connection was lost; try again",
    "25006": "the server is read-only now; try again, or use the primary server",
    "28": "the server refused the user; check user and password",
    "3D000": "there is no such database; create it",
    "40": "another transaction was in the way; try again",
    "53": "the server has no space or connections left; free some and try again",
    "55P03": "it is locked by another process; try again",
    "57": "the server stopped the query or is shutting down; try again",
    "58": "the server's disk failed; check it and try again",
}
"""SQLSTATE or its class -> advice, for failures that may be temporary."""


class PostgreSQL:
    """A PostgreSQL database, shared by processes and machines."""

    name: EngineName = "postgresql"
    foreign_errors: tuple[type[Exception], ...]
    begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
    begin_write = "BEGIN ISOLATION LEVEL READ COMMITTED"

    def __init__(self, url: str, *, patience: float) -> None:
        try:
            import psycopg
        except ImportError:
            raise ConfigError(
                "PostgreSQL needs psycopg, which is not installed; "
                "install enfold[postgres], or use an sqlite:/// address"
            ) from None
        self.foreign_errors = (psycopg.Error,)
        try:
            ports = psycopg.conninfo.conninfo_to_dict(url).get("port")
            for port in str(ports or "").split(","):
                int(port or 0)  # of one that is no number the driver would only fail to connect
            self.url, self._secrets = _hide_secrets(url)
        except (psycopg.ProgrammingError, ValueError):
            # Their texts may quote the address, and with it a password.
            raise ConfigError(
                "the address of the PostgreSQL database cannot be read; "
                "write postgresql://user:password@host:port/name, special characters as %-codes"
            ) from None
        self._conninfo = url
        self._patience = patience

    def connect(self) -> Connection[dict[str, Any]]:
        """Return a new connection."""
        import psycopg
        from psycopg.rows import dict_row

        parameters = dict(parse_qsl(urlsplit(self._conninfo).query))
        connection = psycopg.connect(
            self._conninfo,
            autocommit=True,
            row_factory=dict_row,
            prepare_threshold=0,
            connect_timeout=int(parameters.get("connect_timeout", max(2, round(self._patience)))),
            application_name=parameters.get("application_name", "enfold"),
        )
        connection.prepared_max = _PREPARED
        patience = ("lock_timeout", f"{round(self._patience * 1000)}ms")
        with ExitStack() as on_failure:
            on_failure.callback(connection.close)
            with connection.cursor() as cursor:
                cursor.executemany("SELECT set_config(%s, %s, false)", [*_PLANNING, patience])
            on_failure.pop_all()
        return connection

    async def listen(self, channel: str) -> AsyncGenerator[str, None]:
        """Yield the texts that other connections send to a channel; first an empty one."""
        import psycopg

        connection = await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)
        async with connection:
            await connection.execute(
                psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel))
            )
            yield ""
            async for notice in connection.notifies():
                yield notice.payload

    def translate(self, error: Exception) -> StoreError:
        """Return our error for a driver's error, without details that may quote rows."""
        import psycopg

        failure = cast("psycopg.Error", error)
        state = failure.sqlstate or ""
        first_line = failure.diag.message_primary or str(failure).partition("\n")[0]
        for secret in self._secrets:
            first_line = first_line.replace(secret, _HIDDEN)
        advice = _UNAVAILABLE.get(state) or _UNAVAILABLE.get(state[:2])
        if advice is None and not state and isinstance(error, psycopg.OperationalError):
            advice = "it cannot be reached; check that it runs and try again"
        if advice is None:
            return StoreError(f"database {self.url}: it failed ({first_line})")
        return StoreUnavailableError(f"database {self.url}: {advice} ({first_line})")


def _hide_secrets(url: str) -> tuple[str, frozenset[str]]:
    """Return the address without its secrets, and the secrets."""
    parts = urlsplit(url)
    password = parts.password
    parameters = parse_qsl(parts.query, keep_blank_values=True)
    secrets = {value for key, value in parameters if key in _SECRETS}
    shown = [(key, _HIDDEN if key in _SECRETS else value) for key, value in parameters]
    user, at, host = parts.netloc.rpartition("@")
    if password:
        secrets |= {password, unquote(password)}
        user = f"{user.partition(':')[0]}:{_HIDDEN}"
    safe = parts._replace(netloc=f"{user}{at}{host}", query=urlencode(shown, safe="*/"))
    return urlunsplit(safe), frozenset(secrets - {""})
