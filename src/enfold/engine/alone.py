"""Alone: one process compresses a session at a time, and a dead one holds nobody up for long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from uuid import uuid4

from enfold.errors import StoreError, SummaryError
from enfold.store import leases, records
from enfold.store.store import Store

LEASE_SECONDS = 10.0
"""How long others wait for a process that died. One that lives renews its lease."""
_POLL_SECONDS = 0.05

_log = logging.getLogger("enfold.engine")


@asynccontextmanager
async def alone(
    store: Store, session: records.Session, seconds: float, *, lasting: float = LEASE_SECONDS
) -> AsyncIterator[None]:
    """Wait until nobody else compresses the session, then be the one who does."""
    name, holder = f"compress:{session.key}", uuid4().hex
    deadline = monotonic() + seconds
    while not await store.write(leases.acquire, name, holder, seconds=lasting, session=session.key):
        if monotonic() > deadline:
            raise SummaryError(
                f"another compression of session {session.id!r} runs for {seconds:g} s; try again"
            )
        await asyncio.sleep(_POLL_SECONDS)
    renewing = asyncio.create_task(_renew(store, name, holder, lasting), name="enfold lease")
    try:
        yield
    finally:
        renewing.cancel()
        await asyncio.shield(store.write(leases.release, name, holder))


async def _renew(store: Store, name: str, holder: str, lasting: float) -> None:
    """Keep the lease for as long as this process lives, and not much longer."""
    while True:
        await asyncio.sleep(lasting / 3)
        try:
            await store.write(leases.renew, name, holder, seconds=lasting)
        except StoreError as error:
            # Without it another may begin too; what is recorded first is what counts.
            _log.warning("a lease could not be renewed: %s", error)
