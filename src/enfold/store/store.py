"""The store's async edge: open it, read and write in transactions, close it.

All the store can do is in plain functions that take a `Database` first:

    async with await open_store("sqlite:///chats.db") as store:
        session = await store.write(sessions.get_or_create, "", "my chat")
        await store.write(tree.append, session.key, drafts)
        rows = await store.read(views.view, session.key)

Each call is one transaction. Several functions belong in one if they must succeed together: write
a function that calls them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Concatenate, ParamSpec, Self, TypeVar

from enfold.errors import ConfigError, StoreError
from enfold.store.database import Database
from enfold.store.migrations import is_current, migrate
from enfold.store.postgresql import PostgreSQL
from enfold.store.queries import EngineName, migrations
from enfold.store.sqlite import MEMORY, SQLite
from enfold.store.workers import Engine, Workers

Params = ParamSpec("Params")
Result = TypeVar("Result")

_SQLITE_READERS = 4
_POSTGRESQL_CONNECTIONS = 8
PATIENCE = 10.0
"""Seconds to wait for a lock or a connection before giving up."""


class Store:
    """A database of sessions. Made by `open_store`."""

    def __init__(self, engine: Engine, readers: Workers, writers: Workers) -> None:
        self._engine = engine
        self._readers = readers
        self._writers = writers
        self.writes = 0
        """How often this process has written, or tried to: what was read before may be old."""

    @property
    def url(self) -> str:
        """Where the database is, without a password."""
        return self._engine.url

    @property
    def engine(self) -> EngineName:
        """Which kind of database it is."""
        return self._engine.name

    async def read(
        self,
        function: Callable[Concatenate[Database, Params], Result],
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Call a function of the store that only reads; all it reads is of one moment."""
        return await self._readers.run(
            self._engine.begin_read, lambda db: function(db, *args, **kwargs)
        )

    async def write(
        self,
        function: Callable[Concatenate[Database, Params], Result],
        *args: Params.args,
        **kwargs: Params.kwargs,
    ) -> Result:
        """Call a function of the store; all it writes is committed, or nothing is."""
        try:
            return await self._writers.run(
                self._engine.begin_write, lambda db: function(db, *args, **kwargs)
            )
        finally:
            self.writes += 1

    def listen(self, channel: str) -> AsyncGenerator[str, None]:
        """What others send to a channel; see `notices`, where it is called."""
        if not isinstance(self._engine, PostgreSQL):
            raise StoreError(f"{self.url}: nobody else can send anything here")
        return self._engine.listen(channel)

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Turn the driver's errors into ours, where another library speaks to the database."""
        try:
            yield
        except self._engine.foreign_errors as error:
            raise self._engine.translate(error) from None

    async def close(self) -> None:
        """Let running transactions finish and close every connection."""
        await self._readers.close()
        if self._writers is not self._readers:
            await self._writers.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Store({self.url!r})"


async def open_store(url: str, *, patience: float = PATIENCE) -> Store:
    """Open the database at a `sqlite:///` or `postgresql://` address, migrating it if it is old."""
    scheme = url.partition(":")[0]
    opener = _OPENERS.get(scheme)
    if opener is None:
        raise ConfigError(
            f"no database engine {scheme[:20]!r}; write sqlite:///file.db or postgresql://host/name"
        )
    store = opener(url, patience)
    opened = False
    try:
        steps = migrations(store.engine)
        if not await store.read(is_current, steps):
            await store.write(migrate, steps)
        opened = True
    finally:
        if not opened:
            await store.close()
    return store


def _open_sqlite(url: str, patience: float) -> Store:
    """One thread writes, because SQLite lets one write; a database in memory has one connection."""
    engine = SQLite(url, patience=patience)
    writer = Workers(engine, engine.connect, 1)
    if engine.path == MEMORY:
        return Store(engine, writer, writer)
    readers = Workers(engine, partial(engine.connect, read_only=True), _SQLITE_READERS)
    return Store(engine, readers, writer)


def _open_postgresql(url: str, patience: float) -> Store:
    """Every thread may read and write: PostgreSQL keeps writers apart by rows."""
    engine = PostgreSQL(url, patience=patience)
    workers = Workers(engine, engine.connect, _POSTGRESQL_CONNECTIONS)
    return Store(engine, workers, workers)


_OPENERS: Mapping[str, Callable[[str, float], Store]] = {
    "sqlite": _open_sqlite,
    "postgresql": _open_postgresql,
    "postgres": _open_postgresql,
}
