"""The outbox: background work for messages, such as delivery to long-term memory; also leases.

An entry names a session, a message and the kind of work; it has no message text. Messages for
long-term memory are added in the transaction that records the snapshot that covers them. A worker
claims some entries for a time, does the work and marks them as done. If it dies, its claim expires
and another worker takes over, so all work is done at least once. A receiver recognises a repeated
delivery by the entry's id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from enfold.records import Lease, OutboxEntry, SessionKey, new_id
from enfold.store.database import Database
from enfold.text.words import storable

MEMORY = "memory"
"""Kind of work: the message was summarized and goes to long-term memory."""
COMPRESSION = "compression"
"""Kind of work: compress the branch that ends with the message before that is due."""
LONGEST_DELAY = 300.0
"""Seconds: no claim is longer, and no failed entry waits longer to be tried again."""
_COLUMNS = tuple(field.name for field in fields(OutboxEntry))


def enqueue(db: Database, session: SessionKey, messages: Sequence[str], kind: str = MEMORY) -> None:
    """Add entries for messages. A message gets one entry per kind, ever."""
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


def claim(
    db: Database,
    holder: str,
    *,
    kind: str = MEMORY,
    session: SessionKey | None = None,
    limit: int = 100,
    seconds: float = 60,
) -> list[OutboxEntry]:
    """Claim due entries of a kind for some seconds, oldest first, in all sessions or in one."""
    now = db.now()
    db.change("shorten_claims", kind=kind, latest=_latest(now))
    until = now + round(seconds * 1000)
    taken = {"holder": holder, "kind": kind, "limit": limit, "now": now, "until": until}
    if session is None:
        rows = db.rows("claim", **taken)
    else:
        rows = db.rows("claim_in_session", session=session, **taken)
    oldest_first = sorted(rows, key=lambda row: int(row["seq"]))
    return [OutboxEntry(**{name: row[name] for name in _COLUMNS}) for row in oldest_first]


def due(db: Database, *, limit: int = 100) -> list[tuple[str, SessionKey]]:
    """Return the kinds of work and sessions with due entries, the longest waiting first."""
    now = db.now()
    rows = db.rows("due", now=now, latest=_latest(now), limit=limit)
    return [(row["kind"], row["session"]) for row in rows]


def _latest(now: int) -> int:
    """Return the latest time at which an open entry can be due."""
    return now + round(LONGEST_DELAY * 1000)


def done(db: Database, ids: Sequence[str]) -> None:
    """Mark entries as delivered, even if their claim has expired."""
    now = db.now()
    # Sorted, so that two workers lock the rows in the same order and never deadlock.
    db.change_many("deliver", [{"id": id, "now": now} for id in sorted(ids)])


def failed(db: Database, id: str, holder: str, *, error: str, retry_in: float) -> bool:
    """Make an entry due again in `retry_in` seconds; False if another worker has claimed it."""
    due_at = db.now() + round(retry_in * 1000)
    changed = db.change("postpone", id=id, holder=holder, error=storable(error), due_at=due_at)
    return bool(changed)


def waiting(db: Database, session: SessionKey | None = None) -> int:
    """Return the number of entries that are not delivered yet."""
    row = db.row("waiting") if session is None else db.row("waiting_in_session", session=session)
    return int(row["count"]) if row else 0


def waiting_by_kind(db: Database) -> dict[str, tuple[int, int]]:
    """Return, for each kind of work, the number of open entries and of those that failed before."""
    rows = db.rows("waiting_by_kind")
    return {row["kind"]: (int(row["waiting"]), int(row["failing"])) for row in rows}


def acquire(
    db: Database, name: str, holder: str, *, seconds: float, session: SessionKey | None = None
) -> Lease | None:
    """Return the lease, or None if it is taken; deleting the session ends it.

    All holders of a lease take it for the same time. If the database's clock is set back, a lease
    whose holder died ends after that time, counted from the next attempt to take it.
    """
    now = db.now()
    expires_at = now + round(seconds * 1000)
    db.change("shorten_lease", name=name, expires_at=expires_at)
    taken = db.change(
        "acquire", name=name, holder=holder, session=session, expires_at=expires_at, now=now
    )
    return Lease(name, holder, expires_at) if taken else None


def renew(db: Database, name: str, holder: str, *, seconds: float) -> Lease | None:
    """Extend the lease; None if it has expired."""
    now = db.now()
    expires_at = now + round(seconds * 1000)
    kept = db.change("renew", name=name, holder=holder, expires_at=expires_at, now=now)
    return Lease(name, holder, expires_at) if kept else None


def release(db: Database, name: str, holder: str) -> None:
    """End the lease; no error if it has expired."""
    db.change("release", name=name, holder=holder)


LONGEST = 7_900
"""The longest text of a notification, in bytes; PostgreSQL takes a little more."""


def send(db: Database, channel: str, text: str) -> None:
    """Send a text to all listeners of a channel, in this process too."""
    db.rows("notify", channel=channel, text=text)
