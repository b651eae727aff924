"""Audit: what somebody changed is written down, and forgotten after so many days."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from enfold.engine.engine import Engine
from enfold.engine.state import Level, read_settings
from enfold.errors import StoreError
from enfold.store import access
from enfold.store.access import AuditDraft
from enfold.store.database import Database

_DAY = 24 * 60 * 60 * 1_000

_log = logging.getLogger("enfold.engine")


async def write_down(engine: Engine, entry: AuditDraft) -> None:
    """Log what was done. That cannot undo it, so a log that cannot be written is only told."""
    try:
        await engine.store.write(_write, engine.outside, entry)
    except StoreError as error:
        _log.error("the audit log could not be written: %s", error)


def _write(db: Database, outside: Sequence[Level], entry: AuditDraft) -> None:
    """One entry comes, and some of those that are too old go."""
    access.log(db, entry)
    days = read_settings(db, outside).audit_days
    access.forget(db, before=db.now() - days * _DAY)
