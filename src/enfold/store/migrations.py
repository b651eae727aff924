"""Bringing a database to the version this code speaks."""

from __future__ import annotations

from enfold.errors import StoreVersionError
from enfold.store.database import Database
from enfold.store.queries import EngineName, migrations


def is_current(db: Database, engine: EngineName) -> bool:
    """Whether there is nothing to do. A database from the future is refused."""
    version = _version(db)
    newest = migrations(engine)[-1].version
    if version > newest:
        raise StoreVersionError(
            f"the database has version {version}, this enfold knows {newest}; update enfold"
        )
    return version == newest


def migrate(db: Database, engine: EngineName) -> None:
    """Take every step that is missing. The transaction makes it all or nothing.

    Of several processes that open an old database at once the first migrates it; the others wait
    here and then find it current.
    """
    db.rows("lock_migrations")
    if is_current(db, engine):
        return
    if not db.row("has_migrations"):
        db.change("create_migrations")
    version = _version(db)
    for step in migrations(engine):
        if step.version > version:
            db.run_statements(step.statements)
            db.change("insert_migration", version=step.version, name=step.name, now=db.now())


def _version(db: Database) -> int:
    if not db.row("has_migrations"):
        return 0
    row = db.row("version")
    return int(row["version"]) if row else 0
