"""The built-in memory and its contents."""

from __future__ import annotations

from pathlib import Path

import enfold
from enfold.engine.state import message_of
from enfold.errors import SummaryError
from enfold.flush import Delivery, MemoryWriter
from enfold.store import open_store, sessions, snapshots, tree
from enfold.summaries.local import LocalSummarizer
from enfold.testing import ScriptedSummarizer, assistant, call
from tests.engine.conftest import MODEL, WINDOW, talk


async def test_the_built_in_memory_keeps_facts_per_day_and_never_twice(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    async with enfold.open(url) as engine:
        await engine.models.edit(MODEL, max_input=WINDOW, max_output=20_000, retention_tokens=300)
        session = await engine.session("chat", model=MODEL)
        decision = "We decided to meet in Bergen on 4 May 2027 at 10:00."
        await session.append("Where?", {"role": "assistant", "content": decision})
        await talk(session, 40)
        done = await session.compress()
    async with enfold.open(url) as engine:
        (memory, *more) = await (await engine.find("chat")).memories()
        kept = [memory, *more]
        assert sum(len(snapshot.content["messages"]) for snapshot in kept) == done.messages
        assert any("Bergen" in fact for each in kept for fact in each.content["facts"])
        assert memory.kind == "memory"
        assert memory.content["day"]


async def test_messages_delivered_before_are_skipped(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    async with enfold.open(url) as engine:
        session = await engine.session("chat")
        await session.append("We decided to meet in Bergen.")
    async with await open_store(url) as store:
        record = await store.read(sessions.find, "", "chat")
        assert record is not None
        (row,) = await store.read(tree.path, record.key)
        memory = MemoryWriter(store, LocalSummarizer(), message_of)
        for attempt in (1, 2):
            await memory([Delivery("one", record.key, row, attempt)])
        assert len(await store.read(snapshots.of_kind, record.key, "memory")) == 1


async def test_messages_without_words_leave_no_facts_and_are_not_asked_for_again(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    silent = ScriptedSummarizer(SummaryError("nothing to say"))
    async with enfold.open(url) as engine:
        session = await engine.session("chat")
        await session.append(assistant("", call("1")))
    async with await open_store(url) as store:
        record = await store.read(sessions.find, "", "chat")
        assert record is not None
        (row,) = await store.read(tree.path, record.key)
        await MemoryWriter(store, silent, message_of)([Delivery("one", record.key, row)])
        (kept,) = await store.read(snapshots.of_kind, record.key, "memory")
        assert kept.content["facts"] == []
        assert kept.content["deliveries"] == ["one"]
