"""Threads that each own a connection: where a transaction runs, and how it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from enfold.errors import StoreError
from enfold.store.database import Cursor, Database
from enfold.store.queries import EngineName

Result = TypeVar("Result")


class Connection(Protocol):
    """What both drivers' connections can do."""

    @property
    def closed(self) -> bool: ...
    def cursor(self) -> Cursor: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class Engine(Protocol):
    """A database that the store can live in."""

    name: EngineName
    url: str
    """Where it is; safe to show."""
    foreign_errors: tuple[type[Exception], ...]
    begin_read: str
    begin_write: str

    def translate(self, error: Exception) -> StoreError: ...


class Workers:
    """A few threads with a connection each. One hop to a thread carries a whole transaction."""

    def __init__(self, engine: Engine, connect: Callable[[], Connection], count: int) -> None:
        self._engine = engine
        self._connect = connect
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=f"enfold-{engine.name}")
        self._own = threading.local()
        self._open: set[Connection] = set()
        self._lock = threading.Lock()
        self._closed = False

    async def run(self, begin: str, work: Callable[[Database], Result]) -> Result:
        """Run the work in a transaction of its own, and commit it.

        If the task that waits is cancelled, work that has begun still ends as a whole: it commits
        or it fails, and its connection goes back to its thread.
        """
        if self._closed:
            raise StoreError("the store is closed; open it again")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._transact, begin, work)

    async def close(self) -> None:
        """Let the transactions that run finish, then close every connection."""
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
            # The driver's own error may quote a row or an address with its password.
            raise self._engine.translate(error) from None
        return result

    def _begin(self, begin: str) -> Connection:
        """This thread's connection with a transaction open.

        A connection may have been lost since it was last used. Nothing was done on it yet, so a
        new one takes its place and nobody notices.
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

    def _abandon(self, connection: Connection) -> None:
        """Undo what was done. A connection that cannot is closed, which undoes it too."""
        try:
            connection.rollback()
        except self._engine.foreign_errors:
            self._drop(connection)
        else:
            if connection.closed:
                self._drop(connection)

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._connect()
            self._own.connection = connection
            with self._lock:
                self._open.add(connection)
        return connection

    def _drop(self, connection: Connection) -> None:
        with self._lock:
            self._open.discard(connection)
        if getattr(self._own, "connection", None) is connection:
            self._own.connection = None
        connection.close()
