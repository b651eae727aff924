"""Migrations: old databases are brought up to date, newer ones refused, and rivals wait."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.store.samples import numbered, verify

from enfold.errors import StoreError, StoreVersionError
from enfold.records import SearchScope, SummaryPlace
from enfold.store import Database, Store, open_store, search, sessions, snapshots, tree
from enfold.store.database import Migration, is_current, migrate, migrations

if TYPE_CHECKING:
    from tests.databases import Server


@pytest.fixture(params=["sqlite", "postgresql"])
def untouched(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database that was never opened."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'new.db'}"
    server: Server = request.getfixturevalue("server")
    return server.new_database()


async def test_a_new_database_gets_every_step(untouched: str) -> None:
    async with await open_store(untouched) as store:
        steps = migrations(store.engine)
        assert await store.read(is_current, steps)
        assert await store.read(_versions) == [step.version for step in steps]


async def test_opening_again_changes_nothing(untouched: str) -> None:
    async with await open_store(untouched) as store:
        session = await store.write(sessions.get_or_create, "ours", "chat")
        line = await store.write(tree.append, session.key, numbered(3))
        before = await store.read(_versions)
    async with await open_store(untouched) as store:
        assert await store.read(tree.path, session.key) == line
        assert await store.read(_versions) == before


async def test_many_may_open_a_new_database_at_once(untouched: str) -> None:
    stores: list[Store] = await asyncio.gather(*(open_store(untouched) for _ in range(5)))
    made = await asyncio.gather(
        *(store.write(sessions.get_or_create, "ours", "chat") for store in stores)
    )
    assert len({session.key for session in made}) == 1
    for store in stores:
        await store.close()


async def test_an_old_database_takes_the_missing_steps(store: Store) -> None:
    steps = migrations(store.engine)
    newest = steps[-1].version
    added = [
        Migration(newest + 1, "one.sql", ("CREATE TABLE later (a BIGINT)",)),
        Migration(newest + 2, "two.sql", ("INSERT INTO later VALUES (7)",)),
    ]
    assert not await store.read(is_current, (*steps, *added))
    try:
        await store.write(migrate, (*steps, *added))
        assert await store.read(is_current, (*steps, *added))
        await store.write(migrate, (*steps, *added))
        assert await store.read(_one, "SELECT count(*) AS n FROM later") == 1
        with pytest.raises(StoreVersionError, match=rf"version {newest + 2}.* knows {newest}"):
            await open_store_again(store)
    finally:
        await store.write(
            Database.run_statements,
            ["DROP TABLE later", f"DELETE FROM schema_migrations WHERE version > {newest}"],
        )


async def test_a_step_that_fails_leaves_nothing(store: Store) -> None:
    steps = migrations(store.engine)
    newest = steps[-1].version
    broken = Migration(newest + 1, "bad.sql", ("CREATE TABLE later (a BIGINT)", "CREATE nonsense"))
    with pytest.raises(StoreError):
        await store.write(migrate, (*steps, broken))
    assert await store.read(is_current, steps)
    with pytest.raises(StoreError):
        await store.read(_one, "SELECT count(*) AS n FROM later")


async def test_a_file_of_version_1_is_still_read(tmp_path: Path) -> None:
    """Made as version 1 made it, with what it wrote: two messages and a summary of the first."""
    path = tmp_path / "old.db"
    file = sqlite3.connect(path)
    file.execute("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name, applied_at)")
    for statement in migrations("sqlite")[0].statements:
        file.execute(statement)
    file.executescript(VERSION_1)
    file.close()
    async with await open_store(f"sqlite:///{path}") as store:
        session = await store.read(sessions.find, "ours", "old")
        assert session is not None
        assert session.depth == await store.read(verify, session.key) == 2
        view = await store.read(snapshots.view, session.key)
        assert view.snapshot is not None
        assert view.snapshot.text == "They talk of tea."
        assert view.shown == (SummaryPlace(),)
        assert [message.body for message in view.after] == [b'{"n":2}']
        (hit,) = await store.read(search.search, "tea", SearchScope(session=session.key))
        assert hit.snippet == "Green tea"


VERSION_1 = """
INSERT INTO schema_migrations VALUES (1, '0001_first.sql', 1700000000000);
INSERT INTO sessions VALUES
    (1, 'ours', 'old', '', NULL, NULL, 2, '{}', NULL, 1700000000000, 1700000000000);
INSERT INTO chat_messages VALUES
    (1, 1, NULL, NULL, 1, 5, '2de8d65c79991aa982dd29788f98fb5d',
     'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'f8dd110b5304e84c8219bd53727b3b4b',
     'user', 'openai', 5, 'o200k_base', 0, NULL, NULL,
     NULL, NULL, 1700000000000, CAST('{"n":1}' AS BLOB)),
    (2, 1, 1, 1, 2, 9, 'a8c87ade48357c4934422ca9cad91ff3',
     'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', '135e4820a313935852c6a90606fd3288',
     'assistant', 'openai', 4, 'o200k_base', 0, 10, 4,
     NULL, NULL, 1700000000000, CAST('{"n":2}' AS BLOB));
INSERT INTO branch_tips VALUES (1, 2);
INSERT INTO message_texts VALUES (2, 1, 'Green tea');
INSERT INTO message_words (rowid, scope, words, parts)
    VALUES (2, 'session\u00b71 namespace\u00b74b8101f5baac8912c99b6b0b', 'green tea', '');
INSERT INTO session_snapshots VALUES
    (1, 1, 's1', 'summary', 1, '2de8d65c79991aa982dd29788f98fb5d', 1,
     2, 'a8c87ade48357c4934422ca9cad91ff3', 2, 3, 'o200k_base', NULL, 'native', 'somebody',
     1700000000000, 1700000000000, '{"summaryText":"They talk of tea."}', '[{"summary":true}]');
"""


async def open_store_again(store: Store) -> None:
    """Another opener of the same database, which nothing of it is open after."""
    address = store.url
    async with await open_store(address):
        pass


def _versions(db: Database) -> list[int]:
    rows = db._cursor().execute("SELECT version FROM schema_migrations ORDER BY 1").fetchall()
    return [row["version"] for row in rows]


def _one(db: Database, query: str) -> int:
    row = db._cursor().execute(query).fetchone()
    return int(row["n"])
