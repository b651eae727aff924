"""Work on entries of the outbox: claim them, pass them to their handler, mark them as done.

The claim of a process that dies expires, so every entry is handled at least once. A failed entry
becomes due again after a delay that grows with each attempt.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias
from uuid import uuid4

from enfold.records import OutboxEntry, SessionKey
from enfold.store import outbox
from enfold.store.database import Database
from enfold.store.store import Store

_FIRST_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 300.0
_LONGEST_ERROR = 500

_log = logging.getLogger("enfold.queue")

HandleEntries: TypeAlias = Callable[[Sequence[OutboxEntry]], Awaitable[None]]
"""Handles entries of one kind and one session, oldest first. An error puts them back."""


@dataclass(frozen=True, slots=True)
class WorkHandler:
    """The handler of one kind of work, and its batches."""

    do: HandleEntries
    batch: int = 100
    """The entries of a batch, which are claimed together."""
    seconds: float = 60.0
    """The time after which another process may claim the batch."""
    at_once: int = 1
    """The batches that one process handles at the same time."""
    before_closing: bool = True
    """True if due entries are handled before the process ends, False if they are left."""


class OutboxWork:
    """The handlers of one process by kind of work."""

    def __init__(self, store: Store, handlers: Mapping[str, WorkHandler]) -> None:
        self._store = store
        self._holder = uuid4().hex
        self.handlers = handlers

    async def do(self, kind: str, session: SessionKey | None = None) -> int:
        """Handle all due entries of a kind, in one session or in all; return their number."""
        total = 0
        while number := await self.do_some(kind, session):
            total += number
        return total

    async def do_some(self, kind: str, session: SessionKey | None = None) -> int:
        """Handle one batch; return the number of its entries."""
        handler = self.handlers[kind]
        entries = await self._store.write(
            outbox.claim,
            self._holder,
            kind=kind,
            session=session,
            limit=handler.batch,
            seconds=handler.seconds,
        )
        entries.sort(key=lambda entry: entry.session)
        for _, group in groupby(entries, key=lambda entry: entry.session):
            await self._hand_over(handler, list(group))
        return len(entries)

    async def _hand_over(self, handler: WorkHandler, entries: Sequence[OutboxEntry]) -> None:
        try:
            await handler.do(entries)
        # The handler may be foreign code: whatever it raises, its entries must not be lost.
        except Exception as error:  # noqa: BLE001
            kind, cause = entries[0].kind, type(error).__name__
            _log.warning("background work failed: kind=%s cause=%s", kind, cause)
            await self._store.write(_put_back, self._holder, entries, cause)
        else:
            await self._store.write(outbox.done, [entry.id for entry in entries])


def _put_back(db: Database, holder: str, entries: Sequence[OutboxEntry], error: str) -> None:
    for entry in entries:
        wait = min(_LONGEST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2**entry.attempts)
        outbox.failed(db, entry.id, holder, error=error[:_LONGEST_ERROR], retry_in=wait)
