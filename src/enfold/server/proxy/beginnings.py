"""Beginnings: what holds for a conversation before its first reply, when it has no session yet.

Only settings and the model matter then, and they are the same for everybody who begins. So they are
read once for many, and again as soon as anything may have changed.
"""

from __future__ import annotations

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
        self._known: dict[str, tuple[int, float, Known]] = {}

    async def known(self, model: str) -> Known:
        """What is known of one that begins with that model."""
        store = self._engine.store
        writes, until, known = self._known.get(model, (-1, 0.0, None))
        if known is not None and writes == store.writes and monotonic() < until:
            return known
        writes, until = store.writes, monotonic() + _SECONDS
        known = await store.read(read_known, "", None, _NOTHING, model, self._engine.outside)
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[model] = (writes, until, known)
        return known
