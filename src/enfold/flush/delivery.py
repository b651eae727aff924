"""Delivery: summarized messages on their way from the outbox to a sink.

Messages are put into the outbox in the transaction that records their summary; the caller of a
compression never waits for what becomes of them. The queue hands them over here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from enfold.store import tree
from enfold.store.database import Database
from enfold.store.records import OutboxEntry, SessionKey, StoredMessage
from enfold.store.store import Store


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
