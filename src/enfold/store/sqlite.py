"""The SQLite engine: file, connections and translated errors."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from time import monotonic, sleep

from enfold.errors import ConfigError, StoreError, StoreUnavailableError
from enfold.store.database import EngineName

MEMORY = ":memory:"

_OLDEST = (3, 37, 0)
"""The first version with STRICT tables."""

_PAUSE = 0.01
"""Seconds between two attempts to switch a new file."""
_LOG_BYTES = 4 * 2**20
"""Bytes of the log file from which its pages are copied into the database, as SQLite does."""
_LOG_PAGES = 16_384
"""Pages of the log from which the writer copies them itself: else it might grow without end."""
_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: "it is locked by another process; try again",
    sqlite3.SQLITE_LOCKED: "it is locked by another connection; try again",
    sqlite3.SQLITE_FULL: "there is no space left for it; free some and try again",
    sqlite3.SQLITE_IOERR: "its disk failed or is full; check it and try again",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that the folder exists and is writable",
    sqlite3.SQLITE_READONLY: "it cannot be written; check the rights of the file and its folder",
    sqlite3.SQLITE_PERM: "it may not be opened; check the rights of the file",
    sqlite3.SQLITE_NOMEM: "there is no memory left; try again",
}
_BROKEN = {
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a backup",
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database; name another file",
}


class FileConnection(sqlite3.Connection):
    """A connection to a file. Unlike one to a server it cannot be lost."""

    closed = False


class SQLite:
    """An SQLite database. One connection writes at a time; readers never wait for it."""

    name: EngineName = "sqlite"
    foreign_errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    begin_read = "BEGIN"
    begin_write = "BEGIN IMMEDIATE"

    def __init__(self, url: str, *, patience: float) -> None:
        self.url = url
        self.path = _path_in(url)
        self._patience = patience
        if sqlite3.sqlite_version_info < _OLDEST:
            raise ConfigError(
                f"SQLite {sqlite3.sqlite_version} is too old; "
                f"{'.'.join(map(str, _OLDEST))} or newer is needed"
            )

    def connect(self, *, read_only: bool = False) -> FileConnection:
        """Return a new connection. It may be closed in another thread than it is used in."""
        if self.path != MEMORY:
            _keep_private(self.path)
        connection = sqlite3.connect(
            self.path,
            timeout=self._patience,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            factory=FileConnection,
        )
        connection.row_factory = sqlite3.Row
        # Durable commits (FULL), and readers that never wait (WAL).
        settings = (
            "synchronous = FULL",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            f"journal_size_limit = {_LOG_BYTES}",
            f"wal_autocheckpoint = {_LOG_PAGES}",
            f"query_only = {'ON' if read_only else 'OFF'}",
        )
        with ExitStack() as on_failure:
            on_failure.callback(connection.close)
            if self._use_log(connection) not in {"wal", "memory"}:
                raise ConfigError(
                    f"{self.path}: its file system cannot hold a database shared safely"
                )
            for setting in settings:
                connection.execute(f"PRAGMA {setting}")
            on_failure.pop_all()
        return connection

    def _use_log(self, connection: sqlite3.Connection) -> str:
        """Switch a new file to WAL; return its mode.

        SQLite does not wait for the locks of this switch, so two that open a new file at once
        would fail.
        """
        end = monotonic() + self._patience
        while True:
            try:
                return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > end:
                    raise
            sleep(_PAUSE)

    def translate(self, error: Exception) -> StoreError:
        """Return our error for a driver's error."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _UNAVAILABLE:
            return StoreUnavailableError(f"database {self.path}: {_UNAVAILABLE[code]} ({error})")
        return StoreError(f"database {self.path}: {_BROKEN.get(code, 'it failed')} ({error})")


class FileVersions:
    """Versions of a file: another one after every commit, of any process."""

    def __init__(self, engine: SQLite) -> None:
        self._engine = engine
        self._connection: FileConnection | None = None
        self._lock = threading.Lock()  # two threads must not use a connection at once

    def open(self) -> None:
        """Open the connection that notices commits; without it the version is unknown."""
        with self._lock, suppress(sqlite3.Error):
            if self._connection is None:
                opened = self._engine.connect(read_only=True)
                opened.execute("PRAGMA busy_timeout = 0")
                self._connection = opened

    def current(self) -> int | None:
        """Return the version now, or None if it is unknown; never wait for another process."""
        with self._lock:
            return None if self._connection is None else foreign_commits(self._connection)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None


class LogCopier:
    """Copies the log into the database in a thread of its own, so that no write waits for it.

    SQLite itself does so at the end of a write, and the writes after that one would wait, too:
    for a message of 12 MB longer than for the write.
    """

    def __init__(self, engine: SQLite) -> None:
        self._engine = engine
        self._log = f"{engine.path}-wal"
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="enfold-sqlite-log")
        self._connection: FileConnection | None = None
        self._copying: Future[None] | None = None

    def look(self) -> None:
        """Begin to copy if the log is long, unless that is in progress."""
        if self._copying is not None and not self._copying.done():
            return
        with suppress(OSError, RuntimeError):  # it is gone with the last connection, or closed
            if Path(self._log).stat().st_size > _LOG_BYTES:
                self._copying = self._thread.submit(self._copy)

    def close(self) -> None:
        """Wait until the log is copied, and close the connection."""
        self._thread.shutdown()
        if self._connection is not None:
            self._connection.close()

    def _copy(self) -> None:
        with suppress(sqlite3.Error, ConfigError):  # the writer copies it in the end
            if self._connection is None:
                self._connection = self._engine.connect()
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def foreign_commits(connection: sqlite3.Connection) -> int | None:
    """Return a number that changes when another connection commits; None if it is unknown."""
    try:
        return int(connection.execute("PRAGMA data_version").fetchone()[0])
    except sqlite3.Error:
        return None


def _keep_private(path: str) -> None:
    """Create the file if it is new, and let only its owner read it.

    SQLite gives its log files the rights of the database. A file of another user, or on a file
    system without rights, stays as it is.
    """
    # An existing file is never opened here: to close it would release the locks that SQLite holds
    # on it in this process, for all of its connections.
    with suppress(OSError):  # SQLite reports a file that cannot be opened
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            if stat.S_IMODE(Path(path).stat().st_mode) & 0o077:
                for suffix in ("", "-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        Path(path + suffix).chmod(0o600)


def _path_in(url: str) -> str:
    """Return the path of `sqlite:///relative.db`, `sqlite:////absolute.db` or `sqlite:///:memory:`."""
    path = url.removeprefix("sqlite:///")
    if path == url or not path or "?" in path:
        raise ConfigError(
            f"{url!r} is not the address of an SQLite database; "
            "write sqlite:///file.db, sqlite:////folder/file.db or sqlite:///:memory:"
        )
    if path == MEMORY:
        return path
    file = Path(path).expanduser()
    if not file.parent.is_dir():
        raise ConfigError(f"{url!r}: there is no folder {str(file.parent)!r}; create it first")
    return str(file)
