"""Pins: messages that a person pinned, and standing messages that a person released."""

from __future__ import annotations

from enfold.records import SessionKey
from enfold.store import sessions
from enfold.store.database import Database


def read(db: Database, session: SessionKey) -> dict[str, bool]:
    """Return the message ids: True if pinned, False if released."""
    return {row["message"]: bool(row["pinned"]) for row in db.rows("pins", session=session)}


def remove(db: Database, session: SessionKey, message: str) -> None:
    """Take back a pin; release the message if it has none."""
    if read(db, session).get(message):
        sessions.lock(db, session)
        db.change("delete_pin", session=session, message=message)
    else:
        put(db, session, message, pinned=False)


def put(db: Database, session: SessionKey, message: str, *, pinned: bool) -> None:
    """Pin a message, or release it."""
    sessions.lock(db, session)
    db.change("set_pin", session=session, message=message, pinned=int(pinned), now=db.now())
