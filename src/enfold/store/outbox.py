"""The outbox: messages on their way to long-term memory.

They are put in with the snapshot that covers them, in one transaction. A worker claims some for a
time, delivers them and says so. If it dies, its claim runs out and another worker takes over, so
every message is delivered at least once; the entry's id tells a receiver whether it has had it.
"""

from __future__ import annotations

from collections.abc import Sequence

from enfold.store.database import Database
from enfold.store.records import OutboxEntry, SessionKey, new_id
from enfold.store.words import storable

MEMORY = "memory"


def enqueue(db: Database, session: SessionKey, messages: Sequence[str], kind: str = MEMORY) -> None:
    """Put messages in, each once for a kind, even if it was delivered long ago."""
    if not messages:
        return
    now = db.now()
    db.change_many(
        "enqueue",
        [
            {"session": session, "id": new_id(), "message": message, "kind": kind, "now": now}
            for message in messages
        ],
    )


def claim(db: Database, holder: str, *, limit: int = 100, seconds: float = 60) -> list[OutboxEntry]:
    """Take entries that are due, oldest first, to deliver them within some seconds."""
    now = db.now()
    rows = db.rows("claim", holder=holder, limit=limit, now=now, until=now + round(seconds * 1000))
    entries = []
    for row in sorted(rows, key=lambda row: int(row["seq"])):
        values = dict(row)
        del values["seq"]
        entries.append(OutboxEntry(**values))
    return entries


def done(db: Database, ids: Sequence[str]) -> None:
    """Entries were delivered, whoever holds them now."""
    now = db.now()
    # In one order for all, so that two workers never wait for each other.
    db.change_many("deliver", [{"id": id, "now": now} for id in sorted(ids)])


def failed(db: Database, id: str, holder: str, *, error: str, retry_in: float) -> bool:
    """Put an entry back, due again in some seconds; False if it is another's by now."""
    due_at = db.now() + round(retry_in * 1000)
    changed = db.change("postpone", id=id, holder=holder, error=storable(error), due_at=due_at)
    return bool(changed)


def waiting(db: Database, session: SessionKey | None = None) -> int:
    """How many entries are not delivered yet."""
    row = db.row("waiting") if session is None else db.row("waiting_in_session", session=session)
    return int(row["count"]) if row else 0
