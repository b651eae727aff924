"""The SQL files: the same queries for both engines, and none that reads more than it must."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator

import pytest
from tests.conftest import ROOT

from enfold.store.database import migrations, queries

FOLDER = ROOT / "src" / "enfold" / "store"
ONE_ENGINE = {
    "sqlite": {"check_database", "check_references", "delete_words"},
    "postgresql": {"delete_words_of_session", "has_jobs", "notify", "search_recent"},
}
"""Queries that only one engine needs: SQLite's index must be told what to forget, and gives the
newest first by itself; PostgreSQL has a queue of jobs, and tells other processes."""

WHOLE = {
    "due",
    "has_migrations",
    "model_configs",
    "new_message_keys",
    "profiles",
    "tokens",
    "version",
    "waiting",
    "waiting_by_kind",
    "words_without_text",
}
"""Queries that read a whole table, which is small, or an index of what waits."""


def test_both_engines_have_the_same_queries() -> None:
    sqlite = set(queries("sqlite")) - ONE_ENGINE["sqlite"]
    assert sqlite == set(queries("postgresql")) - ONE_ENGINE["postgresql"]
    assert len(sqlite) > 50


def test_every_query_is_asked() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py"))
    assert not [name for name in queries("sqlite") if f'"{name}"' not in code]


def test_nothing_is_left_to_fill_in() -> None:
    for sql in (*queries("sqlite").values(), *queries("postgresql").values()):
        assert not re.search(r"\{\w+\}", sql)
        assert "--" not in sql.partition("\n")[0]


def test_parameters_are_written_as_the_driver_wants_them() -> None:
    assert "WHERE s.key = :key" in queries("sqlite")["session"]
    assert "WHERE s.key = %(key)s" in queries("postgresql")["session"]
    assert not re.search(r"(?<!:):[a-z]", "".join(queries("postgresql").values()))


def test_migrations_are_numbered_from_one() -> None:
    for engine in ("sqlite", "postgresql"):
        steps = migrations(engine)
        assert [step.version for step in steps] == list(range(1, len(steps) + 1))
        assert all(step.statements for step in steps)
    assert len(migrations("sqlite")) == len(migrations("postgresql"))


@pytest.fixture(scope="module")
def empty() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute(queries("sqlite")["create_migrations"])
    for step in migrations("sqlite"):
        for statement in step.statements:
            connection.execute(statement)
    yield connection
    connection.close()


@pytest.mark.parametrize("name", sorted(set(queries("sqlite")) - WHOLE - {"create_migrations"}))
def test_no_query_goes_through_a_whole_table(empty: sqlite3.Connection, name: str) -> None:
    """Not even in a database without statistics, where the planner knows nothing."""
    sql = queries("sqlite")[name]
    params = {each: "[]" if each in LISTS else 1 for each in re.findall(r"(?<!:):([a-z_]+)", sql)}
    steps = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {sql}", params)]
    tables = {row[0] for row in empty.execute("SELECT name FROM sqlite_master")} | {*"mpseubtjgkc"}
    scanned = [step for step in steps if step.startswith("SCAN") and step.split()[1] in tables]
    assert not [step for step in scanned if "VIRTUAL TABLE" not in step], steps


@pytest.mark.parametrize("name", ["node_by_id", "keys_by_id", "segments", "known_in_session"])
def test_a_message_is_found_by_its_identity(empty: sqlite3.Connection, name: str) -> None:
    sql = queries("sqlite")[name]
    params = {each: "[]" if each in LISTS else 1 for each in re.findall(r"(?<!:):([a-z_]+)", sql)}
    steps = [row[3] for row in empty.execute(f"EXPLAIN QUERY PLAN {sql}", params)]
    assert any("chat_messages_by_id (id=? AND <expr>=?)" in step for step in steps), steps


LISTS = {"keys", "ids", "segments"}
