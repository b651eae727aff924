"""Sessions: found or created by namespace and id, listed, changed, deleted; with their pins."""

from __future__ import annotations

from dataclasses import fields, replace

from enfold.errors import InputError, NotFoundError
from enfold.jsontext import dump_text, loads
from enfold.records import (
    KEY_NAMESPACE,
    KEY_NAMESPACES_END,
    NO_UPDATE,
    SessionCursor,
    SessionKey,
    SessionRecord,
    SessionUpdate,
    check_name,
    conversation_name,
    listing_namespace,
    unlisted_conversation,
)
from enfold.store import index
from enfold.store.database import Database, Row
from enfold.text.words import storable

_FAR_FUTURE = 2**62


def get_or_create(
    db: Database, namespace: str, id: str, changes: SessionUpdate = NO_UPDATE
) -> SessionRecord:
    """Return the session of that id in the namespace; a new one gets the given values."""
    check_name("namespace", namespace)
    check_name("session", id)
    if not id:
        raise InputError("a session needs an id")
    if session := find(db, namespace, id):
        return session
    db.change(
        "create_session",
        namespace=namespace,
        listed_in=listing_namespace(namespace),
        id=id,
        now=db.now(),
        **_columns(changes),
    )
    session = find(db, namespace, id)
    if session is None:
        raise NotFoundError(f"session {id!r} was deleted just now; try again")
    return session


def find(db: Database, namespace: str, id: str) -> SessionRecord | None:
    """Return the session of that id in the namespace, or None."""
    row = db.row("session_by_id", namespace=namespace, id=id)
    return _session(row) if row else None


def find_listed(db: Database, namespace: str, id: str) -> SessionRecord | None:
    """Return the session of that id in the namespace, else one that is listed there, or None."""
    if session := find(db, namespace, id):
        return session
    row = db.row("listed_session_by_id", namespace=namespace, id=id)
    return _session(row) if row else None


def of_client(
    db: Database, namespace: str, client_session: str, *, limit: int = 20
) -> list[SessionRecord]:
    """Return the sessions with a client's session id in a namespace, last used first.

    A client without an access token may change its key, so all namespaces of keys are searched.
    """
    is_key = listing_namespace(namespace) != namespace
    rows = db.rows(
        "sessions_of_client",
        namespace=namespace,
        client_session=client_session,
        prefix=KEY_NAMESPACE if is_key else "",
        end=KEY_NAMESPACES_END if is_key else "",
        limit=limit,
    )
    return [_session(row) for row in rows]


def get(db: Database, key: SessionKey) -> SessionRecord:
    """Return the session of that key."""
    row = db.row("session", key=key)
    if row is None:
        raise NotFoundError(f"there is no session with the key {key}; it may have been deleted")
    return _session(row)


def page(
    db: Database,
    namespace: str,
    *,
    limit: int = 50,
    after: SessionRecord | SessionCursor | None = None,
) -> list[SessionRecord]:
    """Return sessions of a namespace, last used first, `after` the last of the page before.

    The owner's namespace lists the sessions of clients without an access token, too.
    """
    is_listing = listing_namespace(namespace) == namespace
    rows = db.rows(
        "listed_sessions_before" if is_listing else "sessions_before",
        namespace=namespace,
        updated_at=after.updated_at if after else _FAR_FUTURE,
        key=after.key if after else _FAR_FUTURE,
        limit=limit,
    )
    return [_session(row) for row in rows]


def list_next_client_session(db: Database) -> bool:
    """List an older session of a client without a token for the owner; False if none is left."""
    row = db.row("session_to_list", prefix=KEY_NAMESPACE, end=KEY_NAMESPACES_END)
    if row is not None:
        message = unlisted_conversation(row["id"])
        name = row["id"] if message is None else conversation_name(row["namespace"], message)
        index.move_session(db, row["key"], "", name)
    return row is not None


def namespaces(db: Database, *, limit: int = 50, after: str = "") -> list[tuple[str, int]]:
    """Return namespaces and their numbers of sessions, by name, without the owner's."""
    rows = db.rows("namespaces_after", after=after, limit=limit)
    return [(row["namespace"], row["sessions"]) for row in rows]


def count(db: Database, namespace: str) -> int:
    """Return the number of sessions of a namespace."""
    row = db.row("count_sessions", namespace=namespace)
    return int(row["sessions"]) if row else 0


def count_with_profile(db: Database, profile: str) -> int:
    """Return the number of sessions of all namespaces with a profile."""
    row = db.row("count_sessions_with_profile", profile=profile)
    return int(row["sessions"]) if row else 0


def update(db: Database, key: SessionKey, changes: SessionUpdate) -> SessionRecord:
    """Change a session and return it."""
    lock(db, key)
    before = get(db, key)
    names = [field.name for field in fields(SessionUpdate)]
    unchanged = {name: getattr(before, name) for name in names if getattr(changes, name) is None}
    values = replace(changes, **unchanged)
    blocked = dump_text(values.blocked) if values.blocked else None
    db.change("update_session", key=key, blocked=blocked, now=db.now(), **_columns(values))
    return get(db, key)


def _columns(values: SessionUpdate) -> dict[str, str | None]:
    return {
        "title": storable(values.title or ""),
        "profile": values.profile or None,
        "model": values.model or None,
        "client": values.client or None,
        "client_session": values.client_session or None,
        "settings": dump_text(values.settings or {}),
    }


def mark_import(db: Database, key: SessionKey, total: int | None) -> None:
    """Mark that an import of `total` messages has begun; None marks that it is finished."""
    db.change("mark_import", key=key, total=total)


def unfinished_imports(
    db: Database, namespace: str, *, limit: int = 100
) -> tuple[SessionRecord, ...]:
    """Return sessions of a namespace whose import has begun and is not finished, oldest first."""
    rows = db.rows("unfinished_imports", namespace=namespace, limit=limit)
    return tuple(_session(row) for row in rows)


def delete(db: Database, key: SessionKey) -> None:
    """Delete a session and everything that belongs to it."""
    lock(db, key)
    index.forget_session(db, key)
    db.change("delete_unclaimed_usage", session=key)
    db.change("delete_session", key=key)


def lock(db: Database, key: SessionKey) -> int | None:
    """Lock the session until the transaction ends; return the key of its tip."""
    row = db.row("lock_session", key=key)
    if row is None:
        raise NotFoundError(f"there is no session with the key {key}; it may have been deleted")
    tip: int | None = row["tip"]
    return tip


def _session(row: Row) -> SessionRecord:
    blocked = row["blocked"]
    return SessionRecord(
        **{
            **dict(row),
            "settings": loads(row["settings"]),
            "blocked": loads(blocked) if blocked else None,
        }
    )


def read_pins(db: Database, session: SessionKey) -> dict[str, bool]:
    """Return the message ids: True if pinned, False if released."""
    return {row["message"]: bool(row["pinned"]) for row in db.rows("pins", session=session)}


def remove_pin(db: Database, session: SessionKey, message: str) -> None:
    """Take back a pin; release the message if it has none."""
    if read_pins(db, session).get(message):
        lock(db, session)
        db.change("delete_pin", session=session, message=message)
    else:
        set_pin(db, session, message, pinned=False)


def set_pin(db: Database, session: SessionKey, message: str, *, pinned: bool) -> None:
    """Pin a message, or release it."""
    lock(db, session)
    db.change("set_pin", session=session, message=message, pinned=int(pinned), now=db.now())
