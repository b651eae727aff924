"""Work: entries of the outbox, claimed, handed to whoever does them, and settled.

A process that dies leaves its claim to run out, so everything is done at least once. What fails is
put back and becomes due again after a while, longer each time.
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
"""Does entries of one kind and one session, oldest first. Raising puts them back."""


@dataclass(frozen=True, slots=True)
class WorkHandler:
    """Who does one kind of work, and how much of it at a time."""

    do: HandleEntries
    batch: int = 100
    """Entries that are claimed together."""
    seconds: float = 60.0
    """How long it may take before another process thinks that this one is dead."""
    at_once: int = 1
    """Batches that one process does at the same time."""
    before_closing: bool = True
    """Whether what is due is done before a process ends, or left to the next."""


class OutboxWork:
    """All kinds of work of one process."""

    def __init__(self, store: Store, duties: Mapping[str, WorkHandler]) -> None:
        self._store = store
        self._holder = uuid4().hex
        self.duties = duties

    async def do(self, kind: str, session: SessionKey | None = None) -> int:
        """All that is due of a kind, in one session or in all; how many entries that were."""
        total = 0
        while number := await self.do_some(kind, session):
            total += number
        return total

    async def do_some(self, kind: str, session: SessionKey | None = None) -> int:
        """One batch; how many entries it had."""
        duty = self.duties[kind]
        entries = await self._store.write(
            outbox.claim,
            self._holder,
            kind=kind,
            session=session,
            limit=duty.batch,
            seconds=duty.seconds,
        )
        entries.sort(key=lambda entry: entry.session)
        for _, group in groupby(entries, key=lambda entry: entry.session):
            await self._hand_over(duty, list(group))
        return len(entries)

    async def _hand_over(self, duty: WorkHandler, entries: Sequence[OutboxEntry]) -> None:
        try:
            await duty.do(entries)
        # It may be foreign code: whatever it raises, what it was given must not be lost.
        except Exception as error:  # noqa: BLE001
            kind, cause = entries[0].kind, type(error).__name__
            _log.warning("work in the background failed: kind=%s cause=%s", kind, cause)
            await self._store.write(_put_back, self._holder, entries, cause)
        else:
            await self._store.write(outbox.done, [entry.id for entry in entries])


def _put_back(db: Database, holder: str, entries: Sequence[OutboxEntry], error: str) -> None:
    for entry in entries:
        wait = min(_LONGEST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2**entry.attempts)
        outbox.failed(db, entry.id, holder, error=error[:_LONGEST_ERROR], retry_in=wait)
