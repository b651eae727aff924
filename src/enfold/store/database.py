"""Database access inside a transaction: named queries, rows by column, migrations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from enfold.errors import InputError, StoreVersionError
from enfold.text.words import is_storable

EngineName: TypeAlias = Literal["sqlite", "postgresql"]

_LARGEST = 2**63 - 1
"""The largest number that a database takes."""
_SQL = files("enfold.store") / "sql"
_HEAD = re.compile(r"^-- (name|fragment): (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_FRAGMENT = re.compile(r"\{(\w+)\}")
_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    name: str
    statements: tuple[str, ...]


@cache
def queries(engine: EngineName) -> Mapping[str, str]:
    """Return all queries by name."""
    found: dict[str, dict[str, str]] = {"name": {}, "fragment": {}}
    for folder in ("shared", engine):
        for file in _files(_SQL / folder):
            # Text before the first block is a comment.
            pieces = _HEAD.split(file.read_text(encoding="utf-8"))[1:]
            for kind, name, sql in zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=True):
                found[kind][name] = _COMMENT.sub("", sql).strip()
    fragments = found["fragment"]
    by_name = {
        name: _FRAGMENT.sub(lambda match: fragments[match[1]], sql)
        for name, sql in found["name"].items()
    }
    if engine == "sqlite":
        return by_name
    # psycopg takes `%(name)s`, and `%%` for `%`.
    return {
        name: _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%")) for name, sql in by_name.items()
    }


@cache
def migrations(engine: EngineName) -> tuple[Migration, ...]:
    """Return the steps from an empty database to the newest version, in order."""
    steps = []
    for file in _files(_SQL / "migrations" / engine):
        statements = _COMMENT.sub("", file.read_text(encoding="utf-8")).split(";\n")
        written = tuple(each.strip() for each in statements if each.strip())
        steps.append(Migration(int(file.name[:4]), file.name, written))
    return tuple(steps)


def _files(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda file: file.name)


Row: TypeAlias = Mapping[str, Any]


class Cursor(Protocol):
    """The methods that the cursors of both drivers share."""

    @property
    def rowcount(self) -> int: ...
    def execute(self, query: Any, params: Any = ..., /) -> Any: ...
    def executemany(self, query: Any, params_seq: Any, /) -> Any: ...
    def fetchall(self) -> Sequence[Any]: ...
    def fetchone(self) -> Any: ...


class Database:
    """The queries of one transaction; the first argument of every function of the store."""

    def __init__(self, engine: EngineName, cursor: Callable[[], Cursor]) -> None:
        self.engine = engine
        self._cursor = cursor
        self._queries = queries(engine)

    def rows(self, query: str, /, **params: Any) -> Sequence[Row]:
        """Return all rows of a named query."""
        return self._run(query, params).fetchall()

    def row(self, query: str, /, **params: Any) -> Row | None:
        """Return the first row, or None."""
        row: Row | None = self._run(query, params).fetchone()
        return row

    def change(self, query: str, /, **params: Any) -> int:
        """Run a query that writes; return the number of changed rows."""
        return self._run(query, params).rowcount

    def change_many(self, query: str, /, many: Iterable[Mapping[str, Any]]) -> None:
        """Run a query that writes, once for each set of parameters."""
        self._cursor().executemany(self._queries[query], many)

    def now(self) -> int:
        """Return the milliseconds since 1970, by the database's clock."""
        row = self._run("now", {}).fetchone()
        return int(row["now"])

    def run_statements(self, statements: Iterable[str]) -> None:
        """Run SQL statements of a migration, which have no name and no parameters."""
        for statement in statements:
            self._cursor().execute(statement)

    def pages(self, query: str, /, *, size: int = 1_000, **params: Any) -> Iterator[Sequence[Row]]:
        """Yield all rows of a query with the parameters `key` and `limit`, page by page."""
        key = 0
        while rows := self.rows(query, key=key, limit=size, **params):
            yield rows
            key = rows[-1]["key"]

    def _run(self, query: str, params: Mapping[str, Any]) -> Cursor:
        for name, value in params.items():
            if isinstance(value, str) and not is_storable(value):
                raise InputError(f"{name}: U+0000 and half surrogate pairs cannot be stored")
            if isinstance(value, int) and not -_LARGEST - 1 <= value <= _LARGEST:
                raise InputError(f"{name}: {value} is too large a number; at most {_LARGEST:,}")
        cursor = self._cursor()
        cursor.execute(self._queries[query], params)
        return cursor


def is_current(db: Database, steps: Sequence[Migration]) -> bool:
    """Return True if no step is missing; a database of a newer version is refused."""
    version = _version(db)
    newest = steps[-1].version
    if version > newest:
        raise StoreVersionError(
            f"the database has version {version}, this enfold knows {newest}; update enfold"
        )
    return version == newest


def migrate(db: Database, steps: Sequence[Migration]) -> None:
    """Run every step that is missing. The transaction makes it all or nothing.

    If several processes open an old database at once, the first one migrates it; the others wait
    here and then find it current.
    """
    db.rows("lock_migrations")
    if is_current(db, steps):
        return
    if not db.row("has_migrations"):
        db.change("create_migrations")
    version = _version(db)
    for step in steps:
        if step.version > version:
            db.run_statements(step.statements)
            db.change("insert_migration", version=step.version, name=step.name, now=db.now())


def _version(db: Database) -> int:
    if not db.row("has_migrations"):
        return 0
    row = db.row("version")
    return int(row["version"]) if row else 0
