"""Access: tokens are known by their hash alone, and the audit log comes in pages."""

from __future__ import annotations

import asyncio

import pytest

from enfold.errors import ConfigError, InputError, NotFoundError
from enfold.records import AuditDraft
from enfold.store import Database, Store, access


async def test_a_token_is_found_until_it_is_deleted(store: Store) -> None:
    token = access.new_token()
    row = await store.write(access.add, "ann", token)
    assert await store.read(access.find, token) == row
    assert await store.read(access.find, token[:-1]) is None
    assert await store.read(access.tokens) == (row,)
    await store.write(access.delete, row.id)
    assert await store.read(access.find, token) is None
    with pytest.raises(NotFoundError, match=row.id):
        await store.write(access.delete, row.id)


async def test_each_token_has_a_namespace_of_its_own(store: Store) -> None:
    made = [await store.write(access.add, name, access.new_token()) for name in ("ann", "ben")]
    assert len({row.namespace for row in made} | {""}) == 3


async def test_the_token_itself_is_not_stored(store: Store) -> None:
    token = access.new_token()
    await store.write(access.add, "ann", token)
    rows = await store.read(_everything)
    assert token not in rows


def _everything(db: Database) -> str:
    return repr([dict(row) for row in db.rows("tokens")]) + repr(
        [dict(row) for row in db.rows("settings", scope="server")]
    )


async def test_the_first_token_is_replaced_and_keeps_its_namespace(store: Store) -> None:
    old = await store.write(access.put_first, "old")
    new = await store.write(access.put_first, "new")
    assert old.namespace == new.namespace == ""
    assert await store.read(access.find, "old") is None
    assert await store.read(access.find, "new") == new


@pytest.mark.parametrize("name", ["", " ", "x" * 65])
async def test_a_name_has_a_length(store: Store, name: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        await store.write(access.add, name, access.new_token())


async def test_a_name_is_taken_once(store: Store) -> None:
    await store.write(access.add, "ann", access.new_token())
    with pytest.raises(ConfigError, match="already"):
        await store.write(access.add, "ann", access.new_token())
    with pytest.raises(InputError):
        await store.write(access.add, "a\0b", access.new_token())


async def test_every_process_has_the_same_secret(store: Store) -> None:
    made = await asyncio.gather(*(store.write(access.namespace_secret) for _ in range(5)))
    assert len(set(made)) == 1
    assert len(made[0]) == 32


async def test_the_oldest_entries_are_forgotten(store: Store) -> None:
    for number in range(3):
        await store.write(access.log, AuditDraft("ann", "hers", f"POST {number}", 200, "id"))
    (newest, *_) = await store.read(access.logged, "hers")
    await store.write(access.forget, before=0)
    assert len(await store.read(access.logged, "hers")) == 3
    await store.write(access.forget, before=newest.at + 1)
    assert await store.read(access.logged, "hers") == ()


async def test_the_audit_log_comes_in_pages(store: Store) -> None:
    for number in range(5):
        draft = AuditDraft("ann", "hers", f"POST {number}", 200, "id", "a chat", {"messages": 3})
        await store.write(access.log, draft)
    await store.write(access.log, AuditDraft("ben", "his", "POST", 200, "id"))
    page = await store.read(access.logged, "hers", limit=3)
    rest = await store.read(access.logged, "hers", limit=3, before=page[-1].seq)
    assert [entry.action for entry in (*page, *rest)] == [f"POST {n}" for n in (4, 3, 2, 1, 0)]
    assert (page[0].session, page[0].counts) == ("a chat", {"messages": 3})
