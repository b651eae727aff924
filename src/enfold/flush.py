"""Flush: delivery of summarized messages to long-term memory, in the background."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from typing import Any, TypeAlias

from enfold.amounts import utc_day
from enfold.errors import SummaryError
from enfold.messages import Message
from enfold.records import OutboxEntry, SessionKey, Snapshot, SnapshotDraft, StoredMessage
from enfold.store import snapshots, tree
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.summaries import Summarizer, SummaryRequest


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message for long-term memory."""

    id: str
    """The same at every attempt, so that a sink recognises a repeated delivery."""
    session: SessionKey
    message: StoredMessage
    attempt: int = 1
    """The number of the attempt, from 1 on. The first one cannot be a repetition."""


Sink: TypeAlias = Callable[[Sequence[Delivery]], Awaitable[None]]
"""Takes messages of one session, oldest first. Raising puts them back for another attempt."""


class Flush:
    """Delivers the messages of outbox entries to a sink."""

    def __init__(self, store: Store, sink: Sink) -> None:
        self._store = store
        self._sink = sink

    async def __call__(self, entries: Sequence[OutboxEntry]) -> None:
        """Deliver entries of one session."""
        await self._sink(await self._store.read(_deliveries, entries))


def _deliveries(db: Database, entries: Sequence[OutboxEntry]) -> list[Delivery]:
    messages = tree.get_all(db, entries[0].session, [entry.message for entry in entries])
    return [
        Delivery(entry.id, entry.session, messages[entry.message], attempt=entry.attempts)
        for entry in entries
    ]


_FACT_TOKENS = 400
_MAX_SEARCHED = 1_000
"""Number of memory snapshots that are searched for earlier deliveries."""


class MemoryWriter:
    """A sink that stores facts per day as memory snapshots."""

    def __init__(
        self,
        store: Store,
        summarizer: Summarizer,
        decode: Callable[[StoredMessage], Message],
    ) -> None:
        self._store = store
        self._summarizer = summarizer
        self._decode = decode

    async def __call__(self, deliveries: Sequence[Delivery]) -> None:
        """Store the facts of messages of one session; messages delivered before are skipped."""
        session = deliveries[0].session
        is_repeated = any(delivery.attempt > 1 for delivery in deliveries)
        delivered = await self._store.read(_delivered, session) if is_repeated else set()
        new = [delivery for delivery in deliveries if delivery.id not in delivered]
        new.sort(key=lambda delivery: delivery.message.created_at)
        for day, group in groupby(new, key=lambda each: utc_day(each.message.created_at)):
            await self._keep(session, day, list(group))

    async def _keep(self, session: SessionKey, day: str, group: Sequence[Delivery]) -> None:
        messages = tuple(self._decode(delivery.message) for delivery in group)
        try:
            summary = await self._summarizer.summarize(
                SummaryRequest(messages, max_tokens=_FACT_TOKENS)
            )
            facts = [line[2:] for line in summary.text.splitlines() if line.startswith("- ")]
        except SummaryError:
            # There is no text to summarize. The delivery is recorded all the same.
            facts = []
        draft = SnapshotDraft(
            content={
                "day": day,
                "facts": facts,
                "deliveries": [delivery.id for delivery in group],
                "messages": [delivery.message.id for delivery in group],
            },
            kind="memory",
            strategy="memory",
            author=self._summarizer.name,
        )
        await self._store.write(snapshots.record, session, draft)


def _delivered(db: Database, session: SessionKey) -> set[str]:
    kept: Sequence[Snapshot] = snapshots.of_kind(db, session, "memory", limit=_MAX_SEARCHED)
    return {id for snapshot in kept for id in snapshot.content.get("deliveries", ())}


Hook: TypeAlias = Callable[[list[Any]], object]
"""Takes the messages of one summary, oldest first. It may be a coroutine function."""

_log = logging.getLogger("enfold.flush")


def hand_over(hook: Hook, messages: Sequence[Any]) -> None:
    """Call the hook with the messages in another thread; return at once."""
    delivery = _worker().submit(_deliver, hook, list(messages))
    delivery.add_done_callback(partial(_log_failure, len(messages)))


def drain(seconds: float | None = None) -> bool:
    """Wait until everything is delivered; return False after `seconds`."""
    last = _worker().submit(lambda: None)  # the one thread runs it after all others
    return not wait((last,), seconds).not_done


@cache  # one thread for the process; the interpreter waits for it before it exits
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="enfold-flush")


def _deliver(hook: Hook, messages: list[Any]) -> None:
    answer = hook(messages)
    if inspect.iscoroutine(answer):
        asyncio.run(answer)


def _log_failure(number: int, delivery: Future[None]) -> None:
    error = delivery.exception()
    if error is not None:
        kind = type(error).__name__
        _log.warning("memory flush hook failed with %d messages: %s", number, kind)
