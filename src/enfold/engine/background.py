"""Background compression: started before it is due, by any process that has time.

A queue entry holds no more than the id of the last message. A failure costs nothing: when the
compression is due, it happens before the next request is sent.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from enfold.engine.engine import Engine
from enfold.engine.session import Session
from enfold.engine.state import CallOptions
from enfold.errors import CompressionError, facts
from enfold.receipt import RestorableBy
from enfold.records import OutboxEntry
from enfold.store import outbox, sessions

_MAX_ATTEMPTS = 3

_log = logging.getLogger("enfold.engine")


async def queue_compression(
    engine: Engine, session: Session, restorable_by: RestorableBy = "store"
) -> None:
    """Queue a compression of the branch that the session is at."""
    kind = outbox.COMPRESSION_WITH_RECALL if restorable_by == "recall" else outbox.COMPRESSION
    if session.tip is not None:
        await engine.queue.put(kind, session.key, session.tip)


async def compress_queued(engine: Engine, entries: Sequence[OutboxEntry]) -> None:
    """Run queued compressions; raise an error where another attempt can succeed."""
    for entry in entries:
        record = await engine.store.read(sessions.get, entry.session)
        session = Session(engine, record, entry.message)
        try:
            means: RestorableBy = (
                "recall" if entry.kind == outbox.COMPRESSION_WITH_RECALL else "store"
            )
            options = CallOptions(restorable_by=means, requested_at=entry.created_at)
            await session.compress_early(options)
        except CompressionError as error:
            if facts(error).retryable and entry.attempts < _MAX_ATTEMPTS:
                raise
            _log.warning("session %s: gave up background compression: %s", session.id, error)
