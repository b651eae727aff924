"""The tables of procrastinate: laid when they are not there, and brought up to date afterwards.

Several processes may come at once; one does it, the others wait. Tables that are there and that we
did not lay are somebody else's, who keeps them up to date.
"""

from __future__ import annotations

from importlib.resources import files

from enfold.store import catalog
from enfold.store.database import Database

_SCOPE, _STEPS = "queue", "procrastinate"
"""Where in the table of settings it is kept which steps were taken."""


def lay_tables(db: Database) -> None:
    """Make the tables, or take the steps that are missing."""
    from procrastinate.schema import SchemaManager

    steps = _steps()
    if steps.keys() <= (_taken(db) or set()):
        return
    db.rows("lock_migrations")
    taken = _taken(db)
    if taken is None:
        if db.row("has_jobs"):
            return
        _run(db, SchemaManager.get_schema())
        taken = set(steps)
    for name in sorted(steps.keys() - taken):
        _run(db, steps[name])
    catalog.put_setting(db, _SCOPE, _STEPS, sorted(taken | steps.keys()))


def _taken(db: Database) -> set[str] | None:
    """The names of the steps that were taken; None if it was not us who laid the tables."""
    taken = catalog.settings(db, _SCOPE).get(_STEPS)
    return None if taken is None else set(taken)


def _steps() -> dict[str, str]:
    folder = files("procrastinate.sql") / "migrations"
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }


def _run(db: Database, script: str) -> None:
    """Run several statements as one, which is how a prepared one wants them."""
    db.run_statements([f"DO $enfold$ BEGIN EXECUTE $steps${script}$steps$; END $enfold$"])
