"""Running: which compressions are under way, for windows that open in the middle of one."""

from __future__ import annotations

from time import monotonic
from weakref import WeakKeyDictionary

from enfold.engine import Engine
from enfold.events import CompressionFailed, CompressionFinished, CompressionStarted, Event

LONGEST = 600.0
"""Seconds after which nobody believes any more that it runs: its process may have died."""


class Running:
    """The compressions of a namespace, from when the first window asks on."""

    def __init__(self, engine: Engine, namespace: str) -> None:
        self._started: dict[str, tuple[float, CompressionStarted]] = {}
        engine.events.subscribe(self._hear, namespace=namespace)

    def of(self, session: str) -> CompressionStarted | None:
        """What runs in a session. None if nothing does."""
        since, event = self._started.get(session, (0.0, None))
        return event if event is not None and monotonic() - since < LONGEST else None

    def _hear(self, event: Event) -> None:
        match event:
            case CompressionStarted(session=session):
                self._started[session] = (monotonic(), event)
            case CompressionFinished(session=session) | CompressionFailed(session=session):
                self._started.pop(session, None)


_KNOWN: WeakKeyDictionary[Engine, dict[str, Running]] = WeakKeyDictionary()


def running(engine: Engine, namespace: str) -> Running:
    """What runs in a namespace of an engine."""
    known = _KNOWN.setdefault(engine, {})
    if namespace not in known:
        known[namespace] = Running(engine, namespace)
    return known[namespace]
