"""A store on each engine, and a session in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from enfold.records import SessionRecord
from enfold.store import Store, open_store
from enfold.store import sessions as sessions_of


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with await open_store(url) as opened:
        yield opened


@pytest.fixture
async def session(store: Store) -> SessionRecord:
    return await store.write(sessions_of.get_or_create, "ours", "a session")
