"""Times of the store as a session grows: `python benchmarks/store.py [--messages N] [--pg URL]`.

A short and a long session, each in its own database and with a snapshot and 100 messages after its
cutoff, so that their views are alike. Both are measured in turns, so that other work on the machine
slows both.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from enfold.identity import chain, content_hash
from enfold.jsontext import dumps
from enfold.messages import Message, Text
from enfold.records import (
    KeptRange,
    MessageDraft,
    SearchScope,
    SessionRecord,
    SnapshotDraft,
    StoredMessage,
    SummaryPlace,
)
from enfold.store import Store, open_store, search, sessions, snapshots, tree
from enfold.store import snapshots as views

SHORT = 200
AFTER = 100
"""Messages after the cutoff."""
BATCH = 10_000
ROUNDS = 200

numbers = count()


@dataclass(frozen=True)
class Place:
    """A session to measure, and its last messages."""

    store: Store
    session: SessionRecord
    last: tuple[StoredMessage, ...]


Work = Callable[[Place], Awaitable[object]]


def draft(number: int) -> MessageDraft:
    """Return a message of some words."""
    text = (
        f"Message {number}: see src/part_{number % 997}.py and tell me about {number % 89} 数据库"
    )
    role = "user" if number % 2 else "assistant"
    return MessageDraft(
        role=role,
        dialect="openai",
        body=dumps({"role": role, "content": text}),
        content_hash=content_hash(Message("user", (Text(text),))),
        tokens=len(text) // 4,
        tokenizer="o200k_base",
        search_text=text,
    )


async def build(store: Store, size: int) -> Place:
    """Return a session of this many messages; all but the last are summarized."""
    session = await store.write(sessions.get_or_create, "bench", f"{size} messages")
    started = time.perf_counter()
    first = None
    last: tuple[StoredMessage, ...] = ()
    for start in range(0, size, BATCH):
        batch = [draft(number) for number in range(start, min(start + BATCH, size))]
        last = await store.write(tree.append, session.key, batch)
        first = first or last[0]
    seconds = time.perf_counter() - started
    print(f"{size:,} messages written in {seconds:.1f} s", file=sys.stderr)
    assert first is not None
    snapshot = SnapshotDraft(
        {"summaryText": "They talked."},
        cutoff=last[-AFTER - 1].id,
        parent=last[-1].id,
        manifest=(KeptRange(first.id, first.id), SummaryPlace()),
    )
    await store.write(snapshots.record, session.key, snapshot)
    return Place(store, session, last)


async def view(place: Place) -> None:
    """Read the view."""
    rows = await place.store.read(views.view, place.session.key, place.last[-1].id)
    assert len(rows.after) == AFTER
    assert len(rows.shown) == 2


async def turn(place: Place) -> None:
    """Append a question and an answer on a new branch, then read the view."""
    drafts = [draft(10**9 + next(numbers)) for _ in range(2)]
    line = await place.store.write(tree.append, place.session.key, drafts, place.last[-1].id)
    rows = await place.store.read(views.view, place.session.key, line[-1].id)
    assert len(rows.after) == AFTER + 2


async def recognise(place: Place) -> None:
    """Recognise the last hundred messages and a new one; hashes are made beforehand."""
    contents = [message.content_hash for message in place.last[-AFTER:]]
    found = await place.store.read(tree.recognise, chain(contents), session=place.session.key)
    assert found.count == 0


async def page(place: Place) -> None:
    """Read fifty messages from the middle of the history."""
    middle = place.last[len(place.last) // 2].id
    found = await place.store.read(
        tree.page, place.session.key, place.last[-1].id, after=middle, limit=50
    )
    assert len(found) == 50


async def find(place: Place) -> None:
    """Search the newest twenty messages with two words."""
    where = SearchScope(session=place.session.key)
    await place.store.read(search.search, "tell 数据库", where)


WORK: tuple[tuple[str, Work], ...] = (
    ("view", view),
    ("append + view", turn),
    ("recognise", recognise),
    ("page of history", page),
    ("search, newest first", find),
)


async def measure(places: tuple[Place, Place], work: Work) -> tuple[list[float], list[float]]:
    """Return the sorted seconds of the rounds on each."""
    taken: tuple[list[float], list[float]] = ([], [])
    for place in places:
        await work(place)
    for _ in range(ROUNDS):
        for place, seconds in zip(places, taken, strict=True):
            started = time.perf_counter()
            await work(place)
            seconds.append(time.perf_counter() - started)
    return sorted(taken[0]), sorted(taken[1])


async def run(short_url: str, long_url: str, size: int) -> None:
    """Build both, measure both, and print the best and the median round."""
    async with await open_store(short_url) as short, await open_store(long_url) as long:
        places = (await build(short, SHORT), await build(long, size))
        print(f"| {long.engine}: best, median ms | {SHORT:,} messages | {size:,} | ratio |")
        print("|---|--:|--:|--:|")
        for name, work in WORK:
            rounds = await measure(places, work)
            (best, middle), (long_best, long_middle) = (
                (seconds[0] * 1e3, statistics.median(seconds) * 1e3) for seconds in rounds
            )
            print(
                f"| {name} | {best:.2f}, {middle:.2f} | {long_best:.2f}, {long_middle:.2f} "
                f"| {long_best / best:.2f}, {long_middle / middle:.2f} |"
            )


def main() -> None:
    """Return SQLite in a new folder, or PostgreSQL if the address of an empty database is given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--pg", help="postgresql:// address; both sessions go into it")
    parser.add_argument("--folder", help="where to put the SQLite files")
    options = parser.parse_args()
    if options.pg:
        asyncio.run(run(options.pg, options.pg, options.messages))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        short, long = (f"sqlite:///{Path(folder) / name}.db" for name in ("short", "long"))
        asyncio.run(run(short, long, options.messages))


if __name__ == "__main__":
    main()
