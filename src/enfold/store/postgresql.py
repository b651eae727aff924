"""The PostgreSQL engine: a server, its connections, and what its errors mean."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from enfold.errors import ConfigError, StoreError, StoreUnavailableError
from enfold.store.database import EngineName

if TYPE_CHECKING:
    from psycopg import Connection

_SECRETS = frozenset({"password", "sslpassword"})
_HIDDEN = "***"

_PREPARED = 200
"""More than there are queries: each is prepared once for a connection."""

_PLANNING = (
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_seqscan", "off"),
    ("jit", "off"),
)
"""Every query of ours finds a few rows by an index. Planned as if a table were small, one that
walks a tree would read the whole table at every step; so nothing else is ever considered."""

_UNAVAILABLE = {
    "08": "the connection was lost; try again",
    "25006": "the server takes no writes now; try again, or name the one that does",
    "28": "the server refused the user; check user and password",
    "3D000": "there is no such database; create it",
    "40": "another transaction was in the way; try again",
    "53": "the server has no room or connections left; free some and try again",
    "55P03": "it is locked by another process; try again",
    "57": "the server stopped the query or is shutting down; try again",
    "58": "the server's disk failed; check it and try again",
}
"""By SQLSTATE or its class: what to say of failures that may pass."""


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
            _check_ports(psycopg.conninfo.conninfo_to_dict(url).get("port"))
            self.url, self._secrets = _hide_secrets(url)
        except (psycopg.ProgrammingError, ValueError):
            # What they say may quote the address, and with it a password.
            raise ConfigError(
                "the address of the PostgreSQL database cannot be read; "
                "write postgresql://user:password@host:port/name, special characters as %-codes"
            ) from None
        self._conninfo = url
        self._patience = patience

    def connect(self) -> Connection[dict[str, Any]]:
        """A new connection."""
        import psycopg
        from psycopg.rows import dict_row

        asked = _parameters_of(self._conninfo)
        connection = psycopg.connect(
            self._conninfo,
            autocommit=True,
            row_factory=dict_row,
            prepare_threshold=0,
            connect_timeout=int(asked.get("connect_timeout", max(2, round(self._patience)))),
            application_name=asked.get("application_name", "enfold"),
        )
        connection.prepared_max = _PREPARED
        patience = ("lock_timeout", f"{round(self._patience * 1000)}ms")
        ready = False
        try:
            with connection.cursor() as cursor:
                cursor.executemany("SELECT set_config(%s, %s, false)", [*_PLANNING, patience])
            ready = True
        finally:
            if not ready:
                connection.close()
        return connection

    async def listen(self, channel: str) -> AsyncGenerator[str, None]:
        """What other connections send to a channel, as it comes; begins with an empty text."""
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
        """What the error means for whoever called. Details may hold rows, so they stay out."""
        import psycopg

        failure = cast("psycopg.Error", error)
        state = failure.sqlstate or ""
        first_line = failure.diag.message_primary or str(failure).partition("\n")[0]
        said = self._without_secrets(first_line)
        advice = _UNAVAILABLE.get(state) or _UNAVAILABLE.get(state[:2])
        if advice is None and not state and isinstance(error, psycopg.OperationalError):
            advice = "it is out of reach; check that it runs and try again"
        if advice is None:
            return StoreError(f"database {self.url}: it failed ({said})")
        return StoreUnavailableError(f"database {self.url}: {advice} ({said})")

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        return text


def _check_ports(ports: str | int | None) -> None:
    """One for each host; the driver would only notice when it connects."""
    for port in str(ports or "").split(","):
        int(port or 0)


def _hide_secrets(url: str) -> tuple[str, frozenset[str]]:
    """The address fit to be shown, and what must not be shown."""
    parts = urlsplit(url)
    password = parts.password
    asked = parse_qsl(parts.query, keep_blank_values=True)
    secrets = {value for key, value in asked if key in _SECRETS}
    shown = [(key, _HIDDEN if key in _SECRETS else value) for key, value in asked]
    user, at, host = parts.netloc.rpartition("@")
    if password:
        secrets |= {password, unquote(password)}
        user = f"{user.partition(':')[0]}:{_HIDDEN}"
    safe = parts._replace(netloc=f"{user}{at}{host}", query=urlencode(shown, safe="*/"))
    return urlunsplit(safe), frozenset(secrets - {""})


def _parameters_of(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))
