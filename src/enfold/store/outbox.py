"""The outbox: work to be done for messages while nobody waits, as bringing them to memory.

An entry names a session, a message and the kind of work, never what was said. Messages on their way
to memory are put in with the snapshot that covers them, in one transaction. A worker claims some
entries for a time, does the work and says so. If it dies, its claim runs out and another worker
takes over, so everything is done at least once; the entry's id tells a receiver whether it has had
it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from enfold.records import Lease, OutboxEntry, SessionKey, new_id
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.text.words import storable

MEMORY = "memory"
"""Kind of work: the message was folded and goes to long-term memory."""
COMPRESSION = "compression"
"""Kind of work: the branch that ends with the message is to be compressed before it is due."""
COMPRESSION_WITH_RECALL = "compression-recall"
"""The same, where the model itself can look up what is folded."""


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


def claim(
    db: Database,
    holder: str,
    *,
    kind: str = MEMORY,
    session: SessionKey | None = None,
    limit: int = 100,
    seconds: float = 60,
) -> list[OutboxEntry]:
    """Take entries of a kind that are due, oldest first, to do them within some seconds.

    In all sessions, or in one alone.
    """
    now = db.now()
    taken = {
        "holder": holder,
        "kind": kind,
        "limit": limit,
        "now": now,
        "until": now + round(seconds * 1000),
    }
    if session is None:
        rows = db.rows("claim", **taken)
    else:
        rows = db.rows("claim_in_session", session=session, **taken)
    entries = []
    for row in sorted(rows, key=lambda row: int(row["seq"])):
        values = dict(row)
        del values["seq"]
        entries.append(OutboxEntry(**values))
    return entries


def due(db: Database, *, limit: int = 100) -> list[tuple[str, SessionKey]]:
    """Kinds of work and sessions in which something is due, the longest waiting first."""
    rows = db.rows("due", now=db.now(), limit=limit)
    return [(row["kind"], row["session"]) for row in rows]


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


def waiting_by_kind(db: Database) -> dict[str, tuple[int, int]]:
    """For each kind of work how many entries wait, and how many of these have failed before."""
    rows = db.rows("waiting_by_kind")
    return {row["kind"]: (int(row["waiting"]), int(row["failing"])) for row in rows}


def acquire(
    db: Database, name: str, holder: str, *, seconds: float, session: SessionKey | None = None
) -> Lease | None:
    """Take the lease, unless somebody has it, the holder included; it ends with its session."""
    now = db.now()
    expires_at = now + round(seconds * 1000)
    taken = db.change(
        "acquire", name=name, holder=holder, session=session, expires_at=expires_at, now=now
    )
    return Lease(name, holder, expires_at) if taken else None


def renew(db: Database, name: str, holder: str, *, seconds: float) -> Lease | None:
    """Keep the lease for longer; None if it has run out."""
    now = db.now()
    expires_at = now + round(seconds * 1000)
    kept = db.change("renew", name=name, holder=holder, expires_at=expires_at, now=now)
    return Lease(name, holder, expires_at) if kept else None


def release(db: Database, name: str, holder: str) -> None:
    """Give the lease back; no error if it has run out."""
    db.change("release", name=name, holder=holder)


LONGEST = 7_900
"""Bytes of a text; PostgreSQL takes a little more."""


def can_send(store: Store) -> bool:
    """Whether there is a way to other processes."""
    return store.engine == "postgresql"


def send(db: Database, channel: str, text: str) -> None:
    """Tell everybody who listens to the channel, this process too if it does."""
    db.rows("notify", channel=channel, text=text)


async def listen(store: Store, channel: str) -> AsyncGenerator[str, None]:
    """What is sent to a channel, as it comes; an empty text first, once it is listened to."""
    with store.translating():
        async with aclosing(store.listen(channel)) as texts:
            async for text in texts:
                yield text
