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
from enfold.records import OutboxEntry
from enfold.store import sessions

_MAX_ATTEMPTS = 3

_log = logging.getLogger("enfold.engine")


async def compress_queued(engine: Engine, entries: Sequence[OutboxEntry]) -> None:
    """Run queued compressions; raise an error where another attempt can succeed."""
    for entry in entries:
        record = await engine.store.read(sessions.get, entry.session)
        session = Session(engine, record, entry.message)
        try:
            await session.compress_early(CallOptions(requested_at=entry.created_at))
        except CompressionError as error:
            if facts(error).retryable and entry.attempts < _MAX_ATTEMPTS:
                raise
            _log.warning("session %s: gave up background compression: %s", session.id, error)
