"""Feeds: the events of a namespace for any number of listeners.

An event's id is a prefix of this process and a number. A listener that reconnects with the id of
its last event gets the events since then, as far as this process still has them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from itertools import count
from uuid import uuid4

from enfold.errors import LimitError
from enfold.events import Event, Events

REMEMBERED = 1_000
"""Events of a namespace that are kept for listeners that reconnect."""
LISTENERS = 100
"""The maximum number of listeners of a namespace."""


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """An event with its id in the feed."""

    id: str
    event: Event


class Feed:
    """The events of one namespace."""

    def __init__(self, events: Events, namespace: str) -> None:
        self._prefix = uuid4().hex[:12]
        self._numbers = count(1)
        self._past: deque[FeedEvent] = deque(maxlen=REMEMBERED)
        self._listeners: set[asyncio.Queue[FeedEvent | None]] = set()
        events.subscribe(self._publish, namespace=namespace, elsewhere=True)

    def listen(self, last_id: str | None = None) -> asyncio.Queue[FeedEvent | None]:
        """Return a queue with the events since `last_id` and all later ones; None ends it."""
        if len(self._listeners) >= LISTENERS:
            raise LimitError(f"there are already {LISTENERS} listeners, which is the maximum")
        queue: asyncio.Queue[FeedEvent | None] = asyncio.Queue(2 * REMEMBERED)
        past = list(self._past)
        ids = [each.id for each in past]
        for missed in past[ids.index(last_id) + 1 :] if last_id in ids else ():
            queue.put_nowait(missed)
        self._listeners.add(queue)
        return queue

    async def follow(
        self, queue: asyncio.Queue[FeedEvent | None], session: str | None = None
    ) -> AsyncGenerator[FeedEvent, None]:
        """Yield the events of one session, or of all, until the feed ends."""
        try:
            while (found := await queue.get()) is not None:
                if session is None or found.event.session == session:
                    yield found
        finally:
            self._listeners.discard(queue)

    def close(self) -> None:
        """End the feed of every listener."""
        for queue in tuple(self._listeners):
            self._end(queue)

    def _publish(self, event: Event) -> None:
        published = FeedEvent(f"{self._prefix}-{next(self._numbers)}", event)
        self._past.append(published)
        for queue in tuple(self._listeners):
            try:
                queue.put_nowait(published)
            except asyncio.QueueFull:
                # A listener that does not read is dropped; it can reconnect with its last id.
                self._end(queue)

    def _end(self, queue: asyncio.Queue[FeedEvent | None]) -> None:
        self._listeners.discard(queue)
        while queue.full():
            queue.get_nowait()
        queue.put_nowait(None)


class Feeds:
    """The feeds of all namespaces, each created on first use."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._feeds: dict[str, Feed] = {}

    def of(self, namespace: str) -> Feed:
        """Return the feed of a namespace."""
        if namespace not in self._feeds:
            self._feeds[namespace] = Feed(self._events, namespace)
        return self._feeds[namespace]

    def close(self) -> None:
        """End all feeds."""
        for feed in self._feeds.values():
            feed.close()
