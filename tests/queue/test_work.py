"""Claimed, handed over, settled: of one kind, of one session, and put back where it fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from enfold.queue.shared import OutboxWork, WorkHandler
from enfold.records import OutboxEntry, SessionKey
from enfold.store import Store, outbox
from tests.queue.conftest import KIND, Doer, session


async def put(store: Store, chat: SessionKey, *messages: str, kind: str = KIND) -> None:
    await store.write(outbox.enqueue, chat, messages, kind)


async def test_only_its_kind_and_only_its_session(store: Store) -> None:
    doer = Doer()
    work = OutboxWork(store, {KIND: WorkHandler(doer)})
    one, two = await session(store, "one"), await session(store, "two")
    await put(store, one, "a", "b")
    await put(store, two, "c")
    await put(store, one, "d", kind="else")
    assert await work.do(KIND, two) == 1
    assert doer.messages == ["c"]
    assert await work.do(KIND) == 2
    assert doer.messages == ["c", "a", "b"]
    assert await store.read(outbox.due) == [("else", one)]


async def test_each_call_has_one_session_in_order(store: Store) -> None:
    calls: list[list[tuple[int, str]]] = []

    async def keep(entries: Sequence[OutboxEntry]) -> None:
        calls.append([(entry.session, entry.message) for entry in entries])

    one, two = await session(store, "one"), await session(store, "two")
    for chat, message in ((one, "a"), (two, "b"), (one, "c")):
        await put(store, chat, message)
    await OutboxWork(store, {KIND: WorkHandler(keep)}).do(KIND)
    assert calls == [[(one, "a"), (one, "c")], [(two, "b")]]


async def test_failed_work_is_due_later_and_its_cause_is_logged(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    chat = await session(store)
    await put(store, chat, "a secret message id")
    work = OutboxWork(store, {KIND: WorkHandler(Doer(failures=1))})
    assert await work.do(KIND) == 1
    assert await store.read(outbox.waiting_by_kind) == {KIND: (1, 1)}
    assert await store.read(outbox.due) == []
    assert "OSError" in caplog.text
    assert "it is away" not in caplog.text
