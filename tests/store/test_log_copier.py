"""The log of an SQLite file is copied into it while the store is open."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.store.samples import draft, texts

from enfold.store import open_store, sessions, tree

LONG = 2 * 2**20


def _size(path: Path) -> int:
    return path.stat().st_size


async def test_a_long_log_is_copied_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    long = [f"{number} {'a' * LONG}" for number in range(4)]
    async with await open_store(f"sqlite:///{path}") as store:
        session = await store.write(sessions.get_or_create, "ours", "a session")
        for text in long:
            await store.append(tree.append, session.key, [draft(text)])
        async with asyncio.timeout(60):
            while _size(path) < 2 * LONG:  # noqa: ASYNC110 - a thread copies it
                await asyncio.sleep(0.01)
        await store.append(tree.append, session.key, [draft("the last")])
        assert texts(await store.read(tree.path, session.key)) == [*long, "the last"]
    async with await open_store(f"sqlite:///{path}") as store:
        assert texts(await store.read(tree.path, session.key)) == [*long, "the last"]


async def test_the_log_does_not_grow_without_end(tmp_path: Path) -> None:
    path = tmp_path / "chats.db"
    log = Path(f"{path}-wal")
    largest = 0
    async with await open_store(f"sqlite:///{path}") as store:
        session = await store.write(sessions.get_or_create, "ours", "a session")
        for number in range(60):
            await store.append(tree.append, session.key, [draft(f"{number} {'a' * LONG}")])
            largest = max(largest, _size(log))
    assert largest < 40 * LONG
