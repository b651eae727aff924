"""Flush: what was summarized goes to long-term memory, in the background."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from itertools import groupby
from typing import Any, TypeAlias

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
    """The same at every attempt: a sink that has seen it has seen the message."""
    session: SessionKey
    message: StoredMessage
    attempt: int = 1
    """From 1 on. Nobody can have seen it at an earlier one if there was none."""


Sink: TypeAlias = Callable[[Sequence[Delivery]], Awaitable[None]]
"""Takes messages of one session, oldest first. Raising puts them back for another attempt."""


class Flush:
    """Hands what the outbox names to a sink."""

    def __init__(self, store: Store, sink: Sink) -> None:
        self._store = store
        self._sink = sink

    async def __call__(self, entries: Sequence[OutboxEntry]) -> None:
        """Deliver entries of one session."""
        await self._sink(await self._store.read(_deliveries, entries))


def _deliveries(db: Database, entries: Sequence[OutboxEntry]) -> list[Delivery]:
    return [
        Delivery(
            entry.id,
            entry.session,
            tree.get(db, entry.session, entry.message),
            attempt=entry.attempts,
        )
        for entry in entries
    ]


_FACT_TOKENS = 400
_KNOWN = 1_000
"""How many memory snapshots are looked through for what was delivered before."""


class MemoryWriter:
    """Writes facts per day into the store."""

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
        """Keep the facts of messages of one session; those seen before are passed over."""
        session = deliveries[0].session
        again = any(delivery.attempt > 1 for delivery in deliveries)
        known = await self._store.read(_delivered, session) if again else set()
        new = [delivery for delivery in deliveries if delivery.id not in known]
        for day, group in groupby(sorted(new, key=_said_at), key=_day):
            await self._keep(session, day, list(group))

    async def _keep(self, session: SessionKey, day: str, group: Sequence[Delivery]) -> None:
        messages = tuple(self._decode(delivery.message) for delivery in group)
        try:
            summary = await self._summarizer.summarize(
                SummaryRequest(messages, max_tokens=_FACT_TOKENS)
            )
            facts = [line[2:] for line in summary.text.splitlines() if line.startswith("- ")]
        except SummaryError:
            # Nothing in these messages can be said in words; that they were seen is still kept.
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
    kept: Sequence[Snapshot] = snapshots.of_kind(db, session, "memory", limit=_KNOWN)
    return {id for snapshot in kept for id in snapshot.content.get("deliveries", ())}


def _said_at(delivery: Delivery) -> int:
    return delivery.message.created_at


def _day(delivery: Delivery) -> str:
    return datetime.fromtimestamp(_said_at(delivery) / 1000, UTC).date().isoformat()


Hook: TypeAlias = Callable[[list[Any]], object]
"""Takes the messages of one summary, oldest first. It may be a coroutine function."""

_log = logging.getLogger("enfold.flush")


def hand_over(hook: Hook, messages: Sequence[Any]) -> None:
    """Give the messages to the hook, soon and elsewhere; returns at once."""
    delivery = _worker().submit(_deliver, hook, list(messages))
    delivery.add_done_callback(partial(_log_failure, len(messages)))


def drain(seconds: float | None = None) -> bool:
    """Wait until everything was delivered; False if that took longer than so many seconds."""
    behind_all_others = _worker().submit(lambda: None)
    return not wait((behind_all_others,), seconds).not_done


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
