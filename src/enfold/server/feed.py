"""Feeds: the events of a namespace, for any number of listeners, with a memory for those who left.

An event's id is the process's own number and a count. A listener that comes back with the id of
the last event it saw gets what it missed, if this process still has it.
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
"""Events of a namespace that are kept for those who come back."""
LISTENERS = 100
"""Of one namespace, at once."""


@dataclass(frozen=True, slots=True)
class Told:
    """An event, and the id it was told under."""

    id: str
    event: Event


class Feed:
    """The events of one namespace."""

    def __init__(self, events: Events, namespace: str) -> None:
        self._prefix = uuid4().hex[:12]
        self._numbers = count(1)
        self._past: deque[Told] = deque(maxlen=REMEMBERED)
        self._listeners: set[asyncio.Queue[Told | None]] = set()
        events.subscribe(self._tell, namespace=namespace, elsewhere=True)

    def listen(self, last_id: str | None = None) -> asyncio.Queue[Told | None]:
        """Begin to listen, with what was missed since an event; None in the queue is the end."""
        if len(self._listeners) >= LISTENERS:
            raise LimitError(f"{LISTENERS} listen already, which is the most")
        queue: asyncio.Queue[Told | None] = asyncio.Queue(2 * REMEMBERED)
        for told in self._since(last_id):
            queue.put_nowait(told)
        self._listeners.add(queue)
        return queue

    async def follow(
        self, queue: asyncio.Queue[Told | None], session: str | None = None
    ) -> AsyncGenerator[Told, None]:
        """What comes, of one session or of all, until it ends."""
        try:
            while (told := await queue.get()) is not None:
                if session is None or told.event.session == session:
                    yield told
        finally:
            self._listeners.discard(queue)

    def close(self) -> None:
        """Tell everybody that nothing more will come."""
        for queue in tuple(self._listeners):
            self._end(queue)

    def _since(self, last_id: str | None) -> list[Told]:
        past = list(self._past)
        for place, told in enumerate(past):
            if told.id == last_id:
                return past[place + 1 :]
        return []

    def _tell(self, event: Event) -> None:
        told = Told(f"{self._prefix}-{next(self._numbers)}", event)
        self._past.append(told)
        for queue in tuple(self._listeners):
            try:
                queue.put_nowait(told)
            except asyncio.QueueFull:
                # Who does not read is let go, and comes back with the last id.
                self._end(queue)

    def _end(self, queue: asyncio.Queue[Told | None]) -> None:
        self._listeners.discard(queue)
        while queue.full():
            queue.get_nowait()
        queue.put_nowait(None)


class Feeds:
    """A feed for each namespace, from when it is first asked for."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._feeds: dict[str, Feed] = {}

    def of(self, namespace: str) -> Feed:
        """The feed of a namespace."""
        if namespace not in self._feeds:
            self._feeds[namespace] = Feed(self._events, namespace)
        return self._feeds[namespace]

    def close(self) -> None:
        """End every feed."""
        for feed in self._feeds.values():
            feed.close()
