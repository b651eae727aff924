"""The port to a database inside a transaction: queries by name, rows by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from enfold.errors import InputError
from enfold.store.queries import EngineName, queries
from enfold.store.words import is_storable

Row: TypeAlias = Mapping[str, Any]


class Cursor(Protocol):
    """What both drivers' cursors can do."""

    @property
    def rowcount(self) -> int: ...
    def execute(self, query: Any, params: Any = ..., /) -> Any: ...
    def executemany(self, query: Any, params_seq: Any, /) -> Any: ...
    def fetchall(self) -> Sequence[Any]: ...
    def fetchone(self) -> Any: ...


class Database:
    """What the functions of the store read and write with. Lives as long as its transaction."""

    def __init__(self, engine: EngineName, cursor: Callable[[], Cursor]) -> None:
        self.engine = engine
        self._cursor = cursor
        self._queries = queries(engine)

    def rows(self, query: str, /, **params: Any) -> Sequence[Row]:
        """All rows of a named query."""
        return self._run(query, params).fetchall()

    def row(self, query: str, /, **params: Any) -> Row | None:
        """The first row, if there is one."""
        row: Row | None = self._run(query, params).fetchone()
        return row

    def change(self, query: str, /, **params: Any) -> int:
        """Write, and say how many rows that changed."""
        return self._run(query, params).rowcount

    def change_many(self, query: str, /, many: Iterable[Mapping[str, Any]]) -> None:
        """Write once for each set of parameters."""
        self._cursor().executemany(self._queries[query], many)

    def now(self) -> int:
        """Milliseconds since 1970, by the database's clock."""
        row = self._run("now", {}).fetchone()
        return int(row["now"])

    def run_statements(self, statements: Iterable[str]) -> None:
        """Run SQL that has no name and no parameters: a migration's."""
        for statement in statements:
            self._cursor().execute(statement)

    def pages(self, query: str, /, *, size: int = 1_000, **params: Any) -> Iterator[Sequence[Row]]:
        """All rows of a query that goes on after a `key`, some at a time."""
        key = 0
        while rows := self.rows(query, key=key, limit=size, **params):
            yield rows
            key = rows[-1]["key"]

    def _run(self, query: str, params: Mapping[str, Any]) -> Cursor:
        for name, value in params.items():
            if isinstance(value, str) and not is_storable(value):
                raise InputError(f"{name}: U+0000 and half a surrogate pair cannot be in it")
        cursor = self._cursor()
        cursor.execute(self._queries[query], params)
        return cursor
