"""Flush: handing summarized messages to long-term memory, in the background.

Messages are put into the outbox in the transaction that records their summary. A worker claims
some, hands them to a sink and says that they are delivered; the caller of a compression never
waits for it. A worker that dies leaves its claim to run out, so every message is delivered at
least once, under an id that stays the same. On PostgreSQL any number of processes share the work.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias
from uuid import uuid4

from enfold.errors import StoreError
from enfold.store import outbox, tree
from enfold.store.database import Database
from enfold.store.records import OutboxEntry, SessionKey, StoredMessage
from enfold.store.store import Store

_BATCH = 100
_CLAIM_SECONDS = 60.0
_IDLE_SECONDS = 1.0
_FIRST_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 300.0
_LONGEST_ERROR = 500

_log = logging.getLogger("enfold.flush")


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message for long-term memory."""

    id: str
    """The same at every attempt: a sink that has seen it has seen the message."""
    session: SessionKey
    message: StoredMessage


Sink: TypeAlias = Callable[[Sequence[Delivery]], Awaitable[None]]
"""Takes messages of one session, oldest first. Raising puts them back for another attempt."""


class Flush:
    """A worker that empties the outbox into a sink."""

    def __init__(self, store: Store, sink: Sink, *, idle: float = _IDLE_SECONDS) -> None:
        self._store = store
        self._sink = sink
        self._idle = idle
        self._holder = uuid4().hex
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._stopping = False

    def start(self) -> None:
        """Work in the background until `stop`."""
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="enfold flush")

    def wake(self) -> None:
        """There may be something to deliver."""
        self._wake.set()

    async def stop(self) -> None:
        """Deliver what is due, then stop. What fails stays in the outbox for the next process."""
        if self._task is None:
            return
        self._stopping = True
        self._wake.set()
        await self._task
        self._task = None

    async def drain(self) -> int:
        """Deliver everything that is due; how many messages that were."""
        total = 0
        while delivered := await self._deliver_some():
            total += delivered
        return total

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.drain()
            except StoreError as error:
                _log.warning("the outbox cannot be read: %s", error)
            if self._stopping:
                return
            try:
                await asyncio.wait_for(self._wake.wait(), self._idle)
            except TimeoutError:
                continue

    async def _deliver_some(self) -> int:
        deliveries = await self._store.write(_claim, self._holder)
        for _, group in groupby(deliveries, key=lambda entry: entry[0].session):
            await self._deliver(list(group))
        return len(deliveries)

    async def _deliver(self, claimed: Sequence[tuple[OutboxEntry, StoredMessage]]) -> None:
        entries = [entry for entry, _ in claimed]
        batch = [Delivery(entry.id, entry.session, message) for entry, message in claimed]
        try:
            await self._sink(batch)
        # A sink is foreign code: whatever it raises, its messages must not be lost.
        except Exception as error:  # noqa: BLE001
            _log.warning("memory sink failed: %s", type(error).__name__)
            await self._store.write(_put_back, self._holder, entries, type(error).__name__)
        else:
            await self._store.write(outbox.done, [entry.id for entry in entries])


def _claim(db: Database, holder: str) -> list[tuple[OutboxEntry, StoredMessage]]:
    entries = outbox.claim(db, holder, limit=_BATCH, seconds=_CLAIM_SECONDS)
    entries.sort(key=lambda entry: entry.session)
    return [(entry, tree.get(db, entry.session, entry.message)) for entry in entries]


def _put_back(db: Database, holder: str, entries: Sequence[OutboxEntry], error: str) -> None:
    for entry in entries:
        wait = min(_LONGEST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2**entry.attempts)
        outbox.failed(db, entry.id, holder, error=error[:_LONGEST_ERROR], retry_in=wait)
