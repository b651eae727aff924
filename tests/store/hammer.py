"""Writers that are killed while they write, and what must be there afterwards.

Run as a program, because it forks: a child writes and says what was committed, and the parent kills
it at a moment that nobody chose. Another child opens the database, and after some deaths the parent
looks. A fork spares each of hundreds of children the start of Python.

    python -m tests.store.hammer URL ROUNDS SEED
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import time

from tests.store.samples import draft, verify

from enfold.records import (
    EditDraft,
    EditReference,
    ManifestEntry,
    SessionKey,
    SnapshotDraft,
    StoredMessage,
    SummaryPlace,
    UsageEvent,
)
from enfold.store import (
    Database,
    Store,
    catalog,
    open_store,
    outbox,
    sessions,
    snapshots,
    tree,
)
from enfold.store import snapshots as views
from enfold.store.snapshots import SnapshotExtras

EDITS = 3
LONGEST_LIFE = 3 * (EDITS + 1)
"""In what a child says it has written: some messages and a snapshot, over and over."""
BETWEEN_CHECKS = 10
"""Deaths from one check to the next. Every child opens the database that the last one left, and a
loss stays a loss, so a check finds those of all deaths before it."""
LONGEST_WRITE = 0.01
"""About the seconds that a transaction takes."""


def main(url: str, rounds: int, seed: int) -> None:
    """Start and kill a number of children; print the survivors' counts."""
    dice = random.Random(seed)
    confirmed: set[str] = set()
    asyncio.run(_prepare(url))
    for number in range(rounds):
        confirmed |= _live_and_die(url, number, dice)
        if number % BETWEEN_CHECKS == 0:
            asyncio.run(_check(url, confirmed))
    messages, made = asyncio.run(_check(url, confirmed))
    sys.stdout.write(f"{messages} {made} {len(confirmed)}\n")


def _live_and_die(url: str, number: int, dice: random.Random) -> set[str]:
    """Return the ids that a child confirmed before it was killed.

    It may write a few times, and is killed somewhere in what it does next.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        asyncio.run(_write_for_ever(url, number, writing))
        os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        begun = pipe.readline()
        assert begun == "open\n", begun
        lines = [pipe.readline() for _ in range(dice.randrange(LONGEST_LIFE))]
        time.sleep(dice.random() * LONGEST_WRITE)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lines += pipe
        return {line.strip() for line in lines if line.endswith("\n")}


async def _prepare(url: str) -> None:
    async with await open_store(url) as store:
        await store.write(sessions.get_or_create, "ours", "hammered")


async def _write_for_ever(url: str, number: int, pipe: int) -> None:
    store = await open_store(url)
    session = await store.read(sessions.find, "ours", "hammered")
    assert session is not None
    os.write(pipe, b"open\n")
    count = 0
    while True:
        count += 1
        drafts = [draft(f"life {number}, message {count}.{part}") for part in range(EDITS)]
        line = await store.write(tree.append, session.key, drafts)
        os.write(pipe, "".join(f"{message.id}\n" for message in line).encode())
        snapshot = await store.write(snapshots.record, session.key, *_compression(line))
        os.write(pipe, f"{snapshot.id}\n".encode())


def _compression(line: tuple[StoredMessage, ...]) -> tuple[SnapshotDraft, SnapshotExtras]:
    """A snapshot with something in every table that its transaction writes to."""
    edits = [EditDraft(message.id, b"{}", 1, "characters") for message in line]
    manifest: tuple[ManifestEntry, ...] = (
        SummaryPlace(),
        *(EditReference(edit.id) for edit in edits),
    )
    draft = SnapshotDraft(
        {"summaryText": "so far"}, cutoff=line[-1].id, parent=line[-1].id, manifest=manifest
    )
    flush = [message.id for message in line]
    return draft, SnapshotExtras(edits=edits, flush=flush, usage=[UsageEvent("summary")])


async def _check(url: str, confirmed: set[str]) -> tuple[int, int]:
    """Everything that was said to be written is there, and nothing is there by half."""
    async with await open_store(url) as store:
        session = await store.read(sessions.find, "ours", "hammered")
        assert session is not None
        messages = await store.read(verify, session.key)
        made = await store.read(snapshots.of_kind, session.key, limit=10**6)
        there = {each.id for each in made} | await store.read(_message_ids, session.key)
        assert confirmed <= there, f"lost: {confirmed - there}"
        assert messages == session.depth, "one line, whole messages"
        assert messages % EDITS == 0, "an append is whole or not there"
        await _check_compressions(store, session.key, len(made))
        return messages, len(made)


async def _check_compressions(store: Store, session: SessionKey, made: int) -> None:
    await store.read(views.view, session)
    assert len(await store.read(snapshots.all_edits, session)) == EDITS * made
    assert await store.read(outbox.waiting, session) == EDITS * made
    usage = await store.read(catalog.usage_of_session, session)
    assert sum(total.calls for total in usage) == made


def _message_ids(db: Database, session: SessionKey) -> set[str]:
    rows = [row for page in db.pages("messages_to_verify", session=session) for row in page]
    return {row["id"] for row in rows}


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
