"""Exchanges: what was really said to a model where its client saw less of it."""

from __future__ import annotations

from enfold.store import sessions
from enfold.store.database import Database
from enfold.store.records import Exchange, SessionKey


def put(db: Database, session: SessionKey, exchange: Exchange) -> None:
    """Keep an exchange; one that looks the same to the client at the same place is replaced."""
    sessions.lock(db, session)
    db.change(
        "put_exchange",
        session=session,
        snapshot=exchange.snapshot,
        message=exchange.message,
        shown=exchange.shown,
        dialect=exchange.dialect,
        content=exchange.content,
        now=db.now(),
    )


def under(db: Database, session: SessionKey, snapshot: str) -> tuple[Exchange, ...]:
    """All that were had while the snapshot applied, oldest first."""
    rows = db.rows("exchanges_under", session=session, snapshot=snapshot)
    return tuple(Exchange(**{**dict(row), "content": bytes(row["content"])}) for row in rows)
