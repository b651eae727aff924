"""Compressing ahead: before it is due, while nobody waits, by whichever process has time.

It is asked for with the id of the last message alone. If it fails, nothing is lost but a try: when
it is due it happens anyway, before the next request goes out.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from enfold.engine.engine import Engine
from enfold.engine.recognition import BY_CUTOFF
from enfold.engine.session import Session
from enfold.errors import CompressionError, facts
from enfold.receipt import RestorableBy
from enfold.records import OutboxEntry
from enfold.store import outbox, sessions

_TRIES = 3

_log = logging.getLogger("enfold.engine")


async def queue_compression(
    engine: Engine, session: Session, restorable_by: RestorableBy = "store"
) -> None:
    """Ask for it, on the branch that the session is worked on."""
    recalls = restorable_by == "recall"
    kind = outbox.COMPRESSION_WITH_RECALL if recalls else outbox.COMPRESSION
    if session.tip is not None:
        await engine.queue.put(kind, session.key, session.tip)


async def compress_queued(engine: Engine, entries: Sequence[OutboxEntry]) -> None:
    """Do what was asked for; an error is raised where another try may help."""
    for entry in entries:
        record = await engine.store.read(sessions.get, entry.session)
        session = Session(engine, record, entry.message)
        try:
            means: RestorableBy = (
                "recall" if entry.kind == outbox.COMPRESSION_WITH_RECALL else "store"
            )
            await session.compress(asked_at=entry.created_at, restorable_by=means, **BY_CUTOFF)
        except CompressionError as error:
            if facts(error).retryable and entry.attempts < _TRIES:
                raise
            _log.warning("session %s: compressing ahead was given up: %s", session.id, error)
