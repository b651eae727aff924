"""Notices reach every process that listens to their channel, once their transaction is over."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.databases import Server

from enfold.errors import StoreError, StoreUnavailableError
from enfold.store import Database, open_store, outbox


async def test_notices_arrive_in_order_on_their_channel_only(server: Server) -> None:
    url = server.emptied_database()
    async with await open_store(url) as here, await open_store(url) as there:
        assert here.can_notify
        async with aclosing(there.listen("a channel")) as notices:
            assert await anext(notices) == ""
            await here.write(outbox.send, "another", "not for you")
            for text in ("one", "zwei ü", "x" * outbox.LONGEST):
                await here.write(outbox.send, "a channel", text)
            async with asyncio.timeout(30):
                assert await anext(notices) == "one"
                assert await anext(notices) == "zwei ü"
                assert await anext(notices) == "x" * outbox.LONGEST


async def test_a_rolled_back_notice_is_not_sent(server: Server) -> None:
    def fail(db: Database) -> None:
        outbox.send(db, "a channel", "never")
        raise LookupError

    url = server.emptied_database()
    async with (
        await open_store(url) as store,
        aclosing(store.listen("a channel")) as notices,
    ):
        assert await anext(notices) == ""
        with pytest.raises(LookupError):
            await store.write(fail)
        await store.write(outbox.send, "a channel", "this")
        assert await asyncio.wait_for(anext(notices), 30) == "this"


async def test_a_listener_learns_that_the_database_is_gone(server: Server) -> None:
    url = server.emptied_database()
    async with (
        await open_store(url) as store,
        aclosing(store.listen("a channel")) as notices,
    ):
        assert await anext(notices) == ""
        server.stop()
        try:
            with pytest.raises(StoreUnavailableError):
                await asyncio.wait_for(anext(notices), 30)
        finally:
            server.start()


async def test_a_file_cannot_notify_other_processes(tmp_path: Path) -> None:
    async with await open_store(f"sqlite:///{tmp_path / 'a.db'}") as store:
        assert not store.can_notify
        with pytest.raises(StoreError, match="cannot notify other processes"):
            await anext(store.listen("a channel"))
