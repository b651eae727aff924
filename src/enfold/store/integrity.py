"""Integrity: checks that stored messages and edits are unchanged."""

from __future__ import annotations

from enfold.errors import IntegrityError
from enfold.identity import identity
from enfold.records import SessionKey, StoredMessage
from enfold.store import snapshots, tree
from enfold.store.database import Database


def verify(db: Database, session: SessionKey) -> int:
    """Hash every message and every edit of a session again; return the number of messages.

    `IntegrityError` names the first message whose bytes, identity or place does not fit.
    """
    count, key = 0, 0
    depths: dict[str | None, int] = {None: 0}
    while page := tree.written_after(db, session, key):
        for message in page:
            _check_place(message, depths)
            depths[message.id] = message.depth
        count, key = count + len(page), page[-1].key
    snapshots.all_edits(db, session)
    return count


def _check_place(message: StoredMessage, depths: dict[str | None, int]) -> None:
    """Raise `IntegrityError` unless identity and depth fit the message's content and parent.

    Its bytes are checked whenever it is read. Parents are written before their children, so the
    depth of every parent is in `depths`.
    """
    fits = (
        message.id == identity(message.parent, message.content_hash)
        and depths.get(message.parent, -1) == message.depth - 1
    )
    if not fits:
        raise IntegrityError(
            f"message {message.id} is not at the place where it was written; restore the database "
            "from a backup"
        )
