"""A store on each engine, and a doer that remembers what it was given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from enfold.records import OutboxEntry, SessionKey
from enfold.store import Store, open_store, outbox, sessions

KIND = "chores"


class Doer:
    """Does what it is given; fails as often as it is told to, and waits if it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.done: list[OutboxEntry] = []
        self.began = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def __call__(self, entries: Sequence[OutboxEntry]) -> None:
        self.began.set()
        await self.may_go_on.wait()
        if self.failures:
            self.failures -= 1
            raise OSError("it is away")
        self.done.extend(entries)

    @property
    def messages(self) -> list[str]:
        return [entry.message for entry in self.done]


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with await open_store(url) as opened:
        yield opened


async def session(store: Store, name: str = "chat") -> SessionKey:
    return (await store.write(sessions.get_or_create, "", name)).key


async def emptied(*stores: Store) -> None:
    """Wait until nothing is in the outbox any more."""
    async with asyncio.timeout(30):
        while any([await store.read(outbox.waiting) for store in stores]):  # noqa: ASYNC110 - a table
            await asyncio.sleep(0.02)
