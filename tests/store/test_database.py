"""The port: queries by name, rows by column, one clock."""

from __future__ import annotations

import time

import pytest
from tests.store.samples import numbered

from enfold.errors import InputError
from enfold.records import SessionRecord
from enfold.store import Database, Store, catalog, sessions, tree


async def test_rows_by_column(store: Store, session: SessionRecord) -> None:
    def read(db: Database) -> None:
        assert db.row("session", key=session.key)["id"] == session.id  # type: ignore[index]  # it is there
        assert db.row("session", key=99) is None
        assert db.rows("session", key=99) == []

    await store.read(read)


async def test_changes_are_counted(store: Store, session: SessionRecord) -> None:
    def write(db: Database) -> tuple[int, int]:
        one = db.change("move_tip", key=session.key, tip=None, now=1)
        none = db.change("move_tip", key=99, tip=None, now=1)
        return one, none

    assert await store.write(write) == (1, 0)


async def test_pages_go_on_to_the_end(store: Store, session: SessionRecord) -> None:
    stored = await store.write(tree.append, session.key, numbered(10))

    def read(db: Database) -> list[int]:
        pages = list(db.pages("messages_to_verify", session=session.key, size=4))
        assert [len(page) for page in pages] == [4, 4, 2]
        return [row["key"] for page in pages for row in page]

    assert await store.read(read) == [message.key for message in stored]


async def test_the_clock_is_the_databases(store: Store) -> None:
    before = time.time()
    now = await store.read(Database.now)
    assert before - 60 < now / 1000 < before + 60


@pytest.mark.parametrize("text", ["a\x00", "\ud83d"], ids=repr)
async def test_text_that_no_database_holds_is_bad_input(
    store: Store, session: SessionRecord, text: str
) -> None:
    for refused in (
        store.read(sessions.find, "ours", text),
        store.read(tree.get, session.key, text),
        store.read(catalog.profile, text),
        store.write(catalog.put_setting, "global", text, 1),
    ):
        with pytest.raises(InputError, match="surrogate"):
            await refused


async def test_an_unknown_query_is_a_mistake(store: Store) -> None:
    with pytest.raises(KeyError, match="no_such_query"):
        await store.read(Database.rows, "no_such_query")


async def test_several_functions_make_one_transaction(store: Store) -> None:
    def both(db: Database) -> None:
        made = sessions.get_or_create(db, "ours", "new")
        tree.append(db, made.key, numbered(2))
        catalog.put_setting(db, "global", "seen", value=True)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.write(both)
    assert await store.read(sessions.find, "ours", "new") is None
    assert await store.read(catalog.settings, "global") == {}
