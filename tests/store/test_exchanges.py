"""Exchanges: kept under their snapshot, and gone with their session."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enfold.errors import NotFoundError
from enfold.records import Exchange, SessionRecord
from enfold.store import Store, responses, sessions

ONE = Exchange("snap", "m1", "a hash", "openai", b'{"said":"\x00 \xc3\xa9"}')


async def test_stored_exchanges_are_found_by_snapshot(store: Store, session: SessionRecord) -> None:
    other = replace(ONE, message="m2")
    for each in (ONE, other, replace(ONE, snapshot="later")):
        await store.write(responses.put_exchange, session.key, each)
    assert await store.read(responses.exchanges_under, session.key, "snap") == (ONE, other)
    assert await store.read(responses.exchanges_under, session.key, "none") == ()


async def test_an_equal_exchange_at_the_same_place_is_replaced(
    store: Store, session: SessionRecord
) -> None:
    await store.write(responses.put_exchange, session.key, ONE)
    await store.write(responses.put_exchange, session.key, replace(ONE, content=b"{}"))
    await store.write(responses.put_exchange, session.key, replace(ONE, shown="another hash"))
    found = await store.read(responses.exchanges_under, session.key, "snap")
    assert [(each.shown, each.content) for each in found] == [
        ("a hash", b"{}"),
        ("another hash", ONE.content),
    ]


async def test_exchanges_belong_to_their_session_and_are_deleted_with_it(
    store: Store, session: SessionRecord
) -> None:
    neighbour = await store.write(sessions.get_or_create, "theirs", session.id)
    await store.write(responses.put_exchange, session.key, ONE)
    assert await store.read(responses.exchanges_under, neighbour.key, "snap") == ()
    await store.write(sessions.delete, session.key)
    assert await store.read(responses.exchanges_under, session.key, "snap") == ()
    with pytest.raises(NotFoundError):
        await store.write(responses.put_exchange, session.key, ONE)
