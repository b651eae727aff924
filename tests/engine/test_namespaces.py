"""Namespaces: all sessions of one are deleted, and no others."""

from __future__ import annotations

import asyncio

from enfold.engine.access import Namespace
from tests.engine.conftest import Bench


async def _fill(bench: Bench, namespace: str, number: int) -> None:
    for index in range(number):
        session = await bench.engine.session(f"chat {index}", namespace=namespace)
        await session.append("Where is the mooring?")


async def test_namespaces_are_listed_with_their_token_names(bench: Bench) -> None:
    access = bench.engine.access
    row, _ = await access.add_token("ann")
    await _fill(bench, row.namespace, 2)
    await _fill(bench, "key-of-somebody", 1)
    await _fill(bench, "", 1)
    found = await access.namespaces()
    assert found == [Namespace("key-of-somebody", 1, None), Namespace(row.namespace, 2, "ann")]
    assert await access.namespaces(after="key-of-somebody") == found[1:]
    assert await access.namespaces(limit=1) == found[:1]


async def test_two_simultaneous_deletions_delete_everything_once(bench: Bench) -> None:
    access = bench.engine.access
    await _fill(bench, "theirs", 12)
    await _fill(bench, "mine", 1)
    numbers = await asyncio.gather(*(access.delete_sessions("theirs") for _ in range(2)))
    assert sum(numbers) == 12
    assert await access.namespaces() == [Namespace("mine", 1, None)]
    assert len(await bench.engine.search("mooring", namespace="mine")) == 1
    assert await access.delete_sessions("theirs") == 0
