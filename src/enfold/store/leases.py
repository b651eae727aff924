"""Leases: the right to do something alone, across processes, until a time.

By the database's clock. A process that dies keeps nothing: its lease runs out.
"""

from __future__ import annotations

from enfold.store.database import Database
from enfold.store.records import Lease, SessionKey


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
