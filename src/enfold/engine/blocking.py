"""Blocking: a compression that was due and failed stops a session, until one of two things happens.

Either a compression succeeds, or somebody acknowledges the risk; then requests go on with a
warning. A session that is no longer too full is not held up either.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from enfold.errors import BlockedError, CompressionError, TokenCountError, facts
from enfold.events import CompressionFailed, Events, SessionBlocked, SessionUnblocked
from enfold.store import activity, sessions
from enfold.store.records import Session
from enfold.store.sessions import Changes
from enfold.store.store import Store

ACCEPTED = "the risk was acknowledged: sent without the compression that is due"
PASSED = "sent without the compression that is due: it failed, and on_failure is pass"

_log = logging.getLogger("enfold.engine")


def is_acknowledged(session: Session) -> bool:
    """True if requests go on although a compression failed."""
    return session.blocked is not None and bool(session.blocked.get("acknowledged"))


def refuse_if_blocked(session: Session, on_failure: str) -> None:
    """Raise `BlockedError` while the session waits, which it does with `block` alone."""
    if on_failure == "block" and session.blocked is not None and not is_acknowledged(session):
        words = _words(session.id, str(session.blocked.get("reason")))
        raise BlockedError(words, session=session.id)


@asynccontextmanager
async def telling(
    store: Store, events: Events, session: Session, *, automatic: bool
) -> AsyncIterator[None]:
    """Tell of a compression that fails in here, and of a count that does, and keep count."""
    try:
        yield
    except (CompressionError, TokenCountError) as error:
        _tell(events, session, error, automatic=automatic)
        code = facts(error).code
        await store.write(activity.add_failure, session.key, code, automatic=automatic)
        raise


def _tell(
    events: Events,
    session: Session,
    error: CompressionError | TokenCountError,
    *,
    automatic: bool,
) -> None:
    """Log a failure with what is needed to look into it, never with message text, and tell it."""
    known = facts(error)
    _log.error(
        "compression failed: session=%s messages=%d tokens=%d model=%s code=%s automatic=%s",
        session.id,
        session.depth,
        session.tokens,
        session.model,
        known.code,
        automatic,
    )
    events.emit(CompressionFailed(session.id, known.code, str(error), known.retryable, automatic))


async def block(
    store: Store, events: Events, session: Session, error: CompressionError
) -> BlockedError:
    """Stop the session; the answer is the error to raise."""
    blocked = {"reason": str(error), "code": facts(error).code, "acknowledged": False}
    await store.write(sessions.update, session.key, Changes(blocked=blocked))
    events.emit(SessionBlocked(session.id, str(error)))
    return BlockedError(_words(session.id, str(error)), session=session.id)


async def unblock(store: Store, events: Events, session: Session, *, acknowledged: bool) -> None:
    """Let requests go on."""
    if session.blocked is None:
        return
    blocked = {**session.blocked, "acknowledged": True} if acknowledged else {}
    await store.write(sessions.update, session.key, Changes(blocked=blocked))
    events.emit(SessionUnblocked(session.id, acknowledged))


def _words(session: str, reason: str) -> str:
    return (
        f"session {session!r}: {reason}. Nothing was sent; retry the compression, or acknowledge "
        "the risk to go on without it"
    )
