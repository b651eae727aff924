"""Memory: what is kept for later of messages that were summarized, as facts per day.

The sink of `flush` unless another is given. Facts are lines of an extractive summary, written into
a memory snapshot of the session for each day on which something was said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import groupby

from enfold.errors import SummaryError
from enfold.flush.delivery import Delivery
from enfold.messages import Message
from enfold.store import snapshots
from enfold.store.database import Database
from enfold.store.records import SessionKey, Snapshot, SnapshotDraft, StoredMessage
from enfold.store.store import Store
from enfold.summaries import Summarizer, SummaryRequest

_FACT_TOKENS = 400
_KNOWN = 1_000
"""How many memory snapshots are looked through for what was delivered before."""


class Memory:
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
