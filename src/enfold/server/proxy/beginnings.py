"""Beginnings: what holds for a conversation before its first reply, when it has no session yet.

Only settings and the model matter then, and they are the same for everybody who begins. So they are
read once for many, and again as soon as anything may have changed.
"""

from __future__ import annotations

import asyncio
from time import monotonic

from enfold.engine import Engine
from enfold.engine.recognition import History, Known, read_known

_SECONDS = 1.0
"""How long what another process changes may go unnoticed. This one's changes hold at once."""
_MOST = 1_000
_NOTHING = History((), ())


class Beginnings:
    """What is known of conversations that begin, by model."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, tuple[int, float, asyncio.Future[Known]]] = {}

    async def known(self, model: str) -> Known:
        """What is known of one that begins with that model."""
        store = self._engine.store
        writes, until, known = self._known.get(model, (-1, 0.0, None))
        if known is None or writes != store.writes or monotonic() >= until:
            reading = store.read(read_known, "", None, _NOTHING, model, self._engine.outside)
            known = asyncio.ensure_future(reading)
            known.add_done_callback(lambda done: self._forget_failed(model, done))
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[model] = (store.writes, monotonic() + _SECONDS, known)
        # Whoever hangs up leaves it to the others who wait for it.
        return known.result() if known.done() else await asyncio.shield(known)

    def _forget_failed(self, model: str, reading: asyncio.Future[Known]) -> None:
        if reading.cancelled() or reading.exception() is not None:
            self._known.pop(model, None)
