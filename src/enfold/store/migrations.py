"""Bringing a database to the version this code speaks."""

from __future__ import annotations

from collections.abc import Sequence

from enfold.errors import StoreVersionError
from enfold.store.database import Database
from enfold.store.queries import Migration


def is_current(db: Database, steps: Sequence[Migration]) -> bool:
    """Whether no step is missing. A database that took steps we do not know is refused."""
    version = _version(db)
    newest = steps[-1].version
    if version > newest:
        raise StoreVersionError(
            f"the database has version {version}, this enfold knows {newest}; update enfold"
        )
    return version == newest


def migrate(db: Database, steps: Sequence[Migration]) -> None:
    """Take every step that is missing. The transaction makes it all or nothing.

    Of several processes that open an old database at once the first migrates it; the others wait
    here and then find it current.
    """
    db.rows("lock_migrations")
    if is_current(db, steps):
        return
    if not db.row("has_migrations"):
        db.change("create_migrations")
    version = _version(db)
    for step in steps:
        if step.version > version:
            db.run_statements(step.statements)
            db.change("insert_migration", version=step.version, name=step.name, now=db.now())


def _version(db: Database) -> int:
    if not db.row("has_migrations"):
        return 0
    row = db.row("version")
    return int(row["version"]) if row else 0
