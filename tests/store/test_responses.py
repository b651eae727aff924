"""Responses: found by id inside their namespace, for as long as providers keep them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from enfold.errors import NotFoundError
from enfold.records import ResponseItem, SessionRecord, StoredResponse
from enfold.store import Database, Store, responses, sessions

ITEMS = (
    ResponseItem("m1", b'{"id":"m1","said":"\x00 \xc3\xa9"}'),
    ResponseItem(None, b'{"type":"call"}'),
)


def _response(session: SessionRecord, id: str = "resp_1") -> StoredResponse:
    return StoredResponse(session.key, id, "a tip", "a snapshot", ITEMS, b'["\xc3\xa9"]')


async def test_a_response_is_found_by_its_id_with_its_items(
    store: Store, session: SessionRecord
) -> None:
    kept = _response(session)
    await store.write(responses.put, kept)
    await store.write(responses.put, replace(kept, id="resp_2", items=()))
    assert await store.read(responses.find, "ours", "resp_1") == kept
    assert await store.read(responses.item, "ours", "m1") == ITEMS[0].content
    assert await store.read(responses.item, "ours", "m2") is None
    assert await store.read(responses.find, "ours", "resp_3") is None
    assert await store.read(responses.find, "ours", "resp_\0") is None
    assert await store.read(responses.item, "ours", "m\0") is None


async def test_responses_stay_within_their_namespace(store: Store, session: SessionRecord) -> None:
    theirs = await store.write(sessions.get_or_create, "theirs", session.id)
    await store.write(responses.put, _response(session))
    assert await store.read(responses.find, "theirs", "resp_1") is None
    assert await store.read(responses.item, "theirs", "m1") is None
    await store.write(responses.put, replace(_response(theirs), items=(ResponseItem("m1", b"{}"),)))
    assert await store.read(responses.item, "theirs", "m1") == b"{}"
    assert await store.read(responses.find, "ours", "resp_1") == _response(session)


async def test_a_stored_response_is_not_replaced(store: Store, session: SessionRecord) -> None:
    await store.write(responses.put, _response(session))
    await store.write(responses.put, replace(_response(session), tip="another", items=()))
    assert await store.read(responses.find, "ours", "resp_1") == _response(session)


async def test_responses_are_deleted_with_their_session_and_with_age(
    store: Store, session: SessionRecord
) -> None:
    await store.write(responses.put, _response(session))
    await store.write(_age, responses.KEPT + 1)
    later = replace(_response(session, "resp_2"), items=(ResponseItem("m2", b"{}"),))
    await store.write(responses.put, later)
    assert await store.read(responses.find, "ours", "resp_1") is None
    assert await store.read(responses.item, "ours", "m1") is None
    await store.write(sessions.delete, session.key)
    assert await store.read(responses.find, "ours", "resp_2") is None
    assert await store.read(responses.item, "ours", "m2") is None
    with pytest.raises(NotFoundError):
        await store.write(responses.put, _response(session))


def _age(db: Database, milliseconds: int) -> None:
    db.run_statements([f"UPDATE responses SET created_at = created_at - {milliseconds}"])
