"""Access: the access tokens of a server, and its audit log."""

from __future__ import annotations

import secrets
from dataclasses import fields
from hashlib import sha256

from enfold.errors import ConfigError, NotFoundError
from enfold.jsontext import dump_text, loads
from enfold.records import AccessToken, AuditDraft, AuditEntry, check_name, new_id
from enfold.store import catalog
from enfold.store.database import Database
from enfold.text.words import storable

FIRST = "first"
"""The token that the server's environment names. It shares the namespace of the command line."""
_LONGEST_NAME = 64
_END = 2**62
_FORGOTTEN_AT_ONCE = 20
_SCOPE, _SECRET = "server", "namespace_secret"


def new_token() -> str:
    """Return a new random token."""
    return f"enf_{secrets.token_urlsafe(32)}"


def put_first(db: Database, token: str) -> AccessToken:
    """Store the environment's token, in place of the one that it named before."""
    return _put(db, FIRST, "", token)


def add(db: Database, name: str, token: str) -> AccessToken:
    """Store a token with a new namespace."""
    check_name("token", name)
    if not name.strip() or len(name) > _LONGEST_NAME:
        raise ConfigError(f"name: expected 1 to {_LONGEST_NAME} characters, found {name[:80]!r}")
    if db.row("token_by_name", name=name):
        raise ConfigError(f"name: there is a token {name!r} already; delete it, or choose another")
    return _put(db, name, f"token-{new_id()}", token)


def find(db: Database, token: str) -> AccessToken | None:
    """Return the row of a token; None if the token is invalid."""
    row = db.row("token_by_hash", hash=_hash(token))
    return AccessToken(**row) if row else None


def tokens(db: Database) -> tuple[AccessToken, ...]:
    """Return all tokens by name."""
    return tuple(AccessToken(**row) for row in db.rows("tokens"))


def get(db: Database, id: str) -> AccessToken:
    """Return the row of the token with that id."""
    for row in tokens(db):
        if row.id == id:
            return row
    raise NotFoundError(f"there is no token with the id {id!r}")


def delete(db: Database, id: str) -> AccessToken:
    """Delete a token and return its row. Its sessions stay; only the owner can read them."""
    row = get(db, id)
    db.change("delete_token", id=id)
    return row


def namespace_secret(db: Database) -> bytes:
    """Return the key for hashes that separate callers without a token; made at first use."""
    made = dump_text(secrets.token_hex(32))
    db.change("add_secret", scope=_SCOPE, key=_SECRET, value=made, now=db.now())
    return bytes.fromhex(catalog.settings(db, _SCOPE)[_SECRET])


def log(db: Database, entry: AuditDraft) -> None:
    """Write an entry of the audit log."""
    values = {field.name: getattr(entry, field.name) for field in fields(AuditDraft)}
    values["session"] = None if entry.session is None else storable(entry.session)
    values["counts"] = dump_text(dict(entry.counts))
    db.change("insert_audit", now=db.now(), **values)


def forget(db: Database, *, before: int) -> None:
    """Delete a few of the oldest audit entries that were written before that time.

    It is called with every entry that is written, so no call has to delete many.
    """
    db.change("delete_old_audit", before=before, few=_FORGOTTEN_AT_ONCE)


def logged(
    db: Database, namespace: str, *, limit: int = 50, before: int | None = None
) -> tuple[AuditEntry, ...]:
    """Return the audit entries of a namespace, newest first, below the number `before`."""
    rows = db.rows(
        "audit_before",
        namespace=namespace,
        limit=limit,
        before=_END if before is None else before,
    )
    return tuple(AuditEntry(**{**dict(row), "counts": loads(row["counts"])}) for row in rows)


def _put(db: Database, name: str, namespace: str, token: str) -> AccessToken:
    db.change(
        "put_token", id=new_id(), name=name, namespace=namespace, hash=_hash(token), now=db.now()
    )
    row = db.row("token_by_name", name=name)
    if row is None:
        raise NotFoundError(f"the token {name!r} was deleted just now; try again")
    return AccessToken(**row)


def _hash(token: str) -> str:
    # One round is enough: a token is long and random, so it cannot be guessed from its hash.
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
