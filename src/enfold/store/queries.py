"""The SQL: named, commented queries from the files beside this module, ready for an engine.

A block begins with `-- name:` or `-- fragment:`. `{name}` is replaced by the fragment of that
name: an engine's own way of saying something, or a list of columns that several queries share.
Parameters are written `:name`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal, NamedTuple, TypeAlias

EngineName: TypeAlias = Literal["sqlite", "postgresql"]

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
    """Every query by its name."""
    found: dict[str, dict[str, str]] = {"name": {}, "fragment": {}}
    for folder in ("shared", engine):
        for file in _files(_SQL / folder):
            for kind, name, sql in _blocks(file.read_text(encoding="utf-8")):
                found[kind][name] = _COMMENT.sub("", sql).strip()
    fragments = found["fragment"]
    return {
        name: _for_engine(_FRAGMENT.sub(lambda match: fragments[match[1]], sql), engine)
        for name, sql in found["name"].items()
    }


@cache
def migrations(engine: EngineName) -> tuple[Migration, ...]:
    """The steps from an empty database to the newest version, in order."""
    return tuple(
        Migration(int(file.name[:4]), file.name, tuple(_statements(file)))
        for file in _files(_SQL / "migrations" / engine)
    )


def _blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """Kind, name and SQL of each; what stands before the first head is a comment."""
    pieces = _HEAD.split(text)[1:]
    yield from zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=True)


def _files(folder: Traversable) -> list[Traversable]:
    return sorted(folder.iterdir(), key=lambda file: file.name)


def _statements(file: Traversable) -> Iterator[str]:
    for statement in _COMMENT.sub("", file.read_text(encoding="utf-8")).split(";\n"):
        if statement.strip():
            yield statement.strip()


def _for_engine(sql: str, engine: EngineName) -> str:
    """The SQL as the driver wants it: `%(name)s` for psycopg, where our own `%` is doubled."""
    if engine == "sqlite":
        return sql
    return _PARAMETER.sub(r"%(\1)s", sql.replace("%", "%%"))
