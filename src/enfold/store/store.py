"""The store's async interface: open it, read and write in transactions, close it.

Its operations are plain functions that take a `Database` first:

    async with await open_store("sqlite:///chats.db") as store:
        session = await store.write(sessions.get_or_create, "", "my chat")
        await store.write(tree.append, session.key, drafts)
        rows = await store.read(snapshots.view, session.key)

Each call is one transaction. To run several functions in one transaction, write a function that
calls them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, aclosing, contextmanager
from functools import partial
from typing import Concatenate, ParamSpec, Protocol, Self, TypeVar

from enfold.errors import ConfigError, StoreError
from enfold.store.database import Cursor, Database, EngineName, is_current, migrate, migrations
from enfold.store.postgresql import PostgreSQL
from enfold.store.sqlite import (
    MEMORY,
    FileConnection,
    FileVersions,
    LogCopier,
    SQLite,
    foreign_commits,
)


class DatabaseConnection(Protocol):
    """The methods that the connections of both drivers share."""

    @property
    def closed(self) -> bool: ...
    def cursor(self) -> Cursor: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class DatabaseEngine(Protocol):
    """A database engine for the store."""

    name: EngineName
    url: str
    """The address, without secrets."""
    foreign_errors: tuple[type[Exception], ...]
    begin_read: str
    begin_write: str

    def translate(self, error: Exception) -> StoreError: ...


class ConnectionPool:
    """A few threads with one connection each. A whole transaction runs in one thread."""

    def __init__(
        self, engine: DatabaseEngine, connect: Callable[[], DatabaseConnection], count: int
    ) -> None:
        self._engine = engine
        self._connect = connect
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=f"enfold-{engine.name}")
        self._own = threading.local()
        self._open: set[DatabaseConnection] = set()
        self._lock = threading.Lock()
        self._closed = False

    async def run(self, begin: str, work: Callable[[Database], Result]) -> Result:
        """Run the work in a new transaction and commit it.

        If the waiting task is cancelled, work that has begun still ends as a whole: it commits or
        it fails, and its connection stays usable.
        """
        return await self._in_thread(partial(self._transact, begin, work))

    async def run_versioned(
        self, begin: str, work: Callable[[Database], Result], versions: FileVersions
    ) -> tuple[Result, int | None]:
        """Run the work like `run`; also return the version of the file that its commit made.

        The version is None if another process may have committed right after it.
        """
        before: int | None = None

        def watched(db: Database) -> Result:
            nonlocal before
            before = self._foreign_commits()
            return work(db)

        def transact() -> tuple[Result, int | None]:
            versions.open()
            result = self._transact(begin, watched)
            version = versions.current()
            is_last = before is not None and self._foreign_commits() == before
            return result, version if is_last else None

        return await self._in_thread(transact)

    async def _in_thread(self, transact: Callable[[], Result]) -> Result:
        if self._closed:
            raise StoreError("the store is closed; open it again")
        return await asyncio.get_running_loop().run_in_executor(self._threads, transact)

    async def close(self) -> None:
        """Wait for running transactions, then close every connection."""
        self._closed = True
        await asyncio.to_thread(self._threads.shutdown)
        for connection in list(self._open):
            self._drop(connection)

    def _transact(self, begin: str, work: Callable[[Database], Result]) -> Result:
        try:
            connection = self._begin(begin)
            committed = False
            try:
                result = work(Database(self._engine.name, connection.cursor))
                connection.cursor().execute("COMMIT")
                committed = True
            finally:
                if not committed:
                    self._abandon(connection)
        except self._engine.foreign_errors as error:
            # The driver's error may quote a row or an address with its password.
            raise self._engine.translate(error) from None
        return result

    def _begin(self, begin: str) -> DatabaseConnection:
        """Return this thread's connection with an open transaction.

        A connection may have been lost since its last use. Nothing was done on it in this
        transaction yet, so a new one can replace it.
        """
        connection = self._connection()
        try:
            connection.cursor().execute(begin)
        except self._engine.foreign_errors:
            if not connection.closed:
                raise
            self._drop(connection)
            connection = self._connection()
            connection.cursor().execute(begin)
        return connection

    def _abandon(self, connection: DatabaseConnection) -> None:
        """Roll back. A connection that cannot is closed, which rolls back too."""
        try:
            connection.rollback()
        except self._engine.foreign_errors:
            self._drop(connection)
        else:
            if connection.closed:
                self._drop(connection)

    def _connection(self) -> DatabaseConnection:
        connection: DatabaseConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._connect()
            self._own.connection = connection
            with self._lock:
                self._open.add(connection)
        return connection

    def _foreign_commits(self) -> int | None:
        connection = self._connection()
        return foreign_commits(connection) if isinstance(connection, FileConnection) else None

    def _drop(self, connection: DatabaseConnection) -> None:
        with self._lock:
            self._open.discard(connection)
        if getattr(self._own, "connection", None) is connection:
            self._own.connection = None
        connection.close()


Params = ParamSpec("Params")
Result = TypeVar("Result")

_SQLITE_READERS = 4
_POSTGRESQL_CONNECTIONS = 8
PATIENCE = 10.0
"""Seconds to wait for a lock or a connection before giving up."""


class Store:
    """A database of sessions. Made by `open_store`."""

    def __init__(
        self,
        engine: DatabaseEngine,
        readers: ConnectionPool,
        writers: ConnectionPool,
        versions: FileVersions | None = None,
        log: LogCopier | None = None,
    ) -> None:
        self._engine = engine
        self._readers = readers
        self._writers = writers
        self._versions = versions
        self._log = log
        self.writes = 0
        """The number of writes of this process, failed ones included."""
        self.changes = 0
        """The number of those that may change settings or models; caches compare it."""

    @property
    def url(self) -> str:
        """The address of the database, without a password."""
        return self._engine.url

    @property
    def engine(self) -> EngineName:
        """The name of the database engine."""
        return self._engine.name

    async def read(
        self,
        function: Callable[Concatenate[Database, Params], Result],
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Call a function of the store that only reads, on one consistent state."""
        return await self._readers.run(
            self._engine.begin_read, lambda db: function(db, *args, **kwargs)
        )

    async def write(
        self,
        function: Callable[Concatenate[Database, Params], Result],
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Call a function of the store; everything it writes is committed, or nothing."""
        try:
            return await self.append(function, *args, **kwargs)
        finally:
            self.changes += 1

    async def append(
        self,
        function: Callable[Concatenate[Database, Params], Result],
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Write with a function that only adds rows, such as messages or usage."""
        try:
            return await self._writers.run(
                self._engine.begin_write, lambda db: function(db, *args, **kwargs)
            )
        finally:
            self._end_write()

    async def append_versioned(
        self,
        function: Callable[Concatenate[Database, Params], Result],
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> tuple[Result, int | None]:
        """Write like `append`; also return the version that the write made, if it is known."""
        if self._versions is None:
            return await self.append(function, *args, **kwargs), None
        try:
            return await self._writers.run_versioned(
                self._engine.begin_write, lambda db: function(db, *args, **kwargs), self._versions
            )
        finally:
            self._end_write()

    def _end_write(self) -> None:
        self.writes += 1
        if self._log is not None:
            self._log.look()

    def version(self) -> int | None:
        """Return the version of the database: another number after every commit of any process.

        None if it is unknown: on PostgreSQL, in memory, and before the first `append_versioned`.
        """
        return None if self._versions is None else self._versions.current()

    @property
    def can_notify(self) -> bool:
        """True if `outbox.send` reaches the listeners of other processes."""
        return isinstance(self._engine, PostgreSQL)

    async def listen(self, channel: str) -> AsyncGenerator[str, None]:
        """Yield the texts that are sent to a channel; first an empty one, once it listens."""
        if not isinstance(self._engine, PostgreSQL):
            raise StoreError(f"{self.url}: this database cannot notify other processes")
        with self.translating():
            async with aclosing(self._engine.listen(channel)) as texts:
                async for text in texts:
                    yield text

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Translate the driver's errors where another library uses the database."""
        try:
            yield
        except self._engine.foreign_errors as error:
            raise self._engine.translate(error) from None

    async def close(self) -> None:
        """Wait for running transactions and close every connection."""
        await self._readers.close()
        if self._writers is not self._readers:
            await self._writers.close()
        for each in (self._versions, self._log):
            if each is not None:
                await asyncio.to_thread(each.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Store({self.url!r})"


async def open_store(url: str, *, patience: float = PATIENCE) -> Store:
    """Open the database at a `sqlite:///` or `postgresql://` address; migrate it if it is old."""
    scheme = url.partition(":")[0]
    opener = _OPENERS.get(scheme)
    if opener is None:
        raise ConfigError(
            f"no database engine {scheme[:20]!r}; write sqlite:///file.db or postgresql://host/name"
        )
    store = opener(url, patience)
    async with AsyncExitStack() as on_failure:
        on_failure.push_async_callback(store.close)
        steps = migrations(store.engine)
        if not await store.read(is_current, steps):
            await store.write(migrate, steps)
        on_failure.pop_all()
    return store


def _open_sqlite(url: str, patience: float) -> Store:
    """Return a store with one writing thread; a database in memory has one connection in all."""
    engine = SQLite(url, patience=patience)
    writer = ConnectionPool(engine, engine.connect, 1)
    if engine.path == MEMORY:
        return Store(engine, writer, writer)
    readers = ConnectionPool(engine, partial(engine.connect, read_only=True), _SQLITE_READERS)
    return Store(engine, readers, writer, FileVersions(engine), LogCopier(engine))


def _open_postgresql(url: str, patience: float) -> Store:
    """Return a store whose threads all read and write: PostgreSQL locks rows, not files."""
    engine = PostgreSQL(url, patience=patience)
    workers = ConnectionPool(engine, engine.connect, _POSTGRESQL_CONNECTIONS)
    return Store(engine, workers, workers)


_OPENERS: Mapping[str, Callable[[str, float], Store]] = {
    "sqlite": _open_sqlite,
    "postgresql": _open_postgresql,
    "postgres": _open_postgresql,
}
