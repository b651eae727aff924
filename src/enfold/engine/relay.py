"""The relay: sends the events of this process to the others on its database, and receives theirs.

A notice has the content of an event and its namespace, never text of the session. A notice that
cannot be sent or received is lost: a process that needs the state of a session reads it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from enfold.errors import StoreError
from enfold.events import Event, Events, from_payload, payload
from enfold.jsontext import dump_text, loads
from enfold.records import listing_namespace
from enfold.store import outbox
from enfold.store.store import Store

CHANNEL = "enfold_events"

_LONGEST_TEXT = 1_000
"""Characters of a reason or a warning that are passed on."""
_LONGEST_LIST = 5
"""Warnings or steps that are passed on."""
_MANY = 1_000
"""Events that wait to be sent; more are not kept while the database is away."""
_RETRY_SECONDS = 1.0

_log = logging.getLogger("enfold.engine")


class Relay:
    """Exchanges events with the other processes on the same database."""

    def __init__(self, store: Store, events: Events) -> None:
        self._store = store
        self._events = events
        self._process = uuid4().hex
        self._waiting: asyncio.Queue[tuple[str, Event] | None] = asyncio.Queue(_MANY)
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_forwarding: Callable[[], object] = lambda: None

    def start(self) -> None:
        """Send and receive until `stop`, if the database can notify other processes."""
        if not self._store.can_notify:
            return
        self._stop_forwarding = self._events.forward(self._take)
        self._tasks = [asyncio.create_task(each) for each in (self._send(), self._receive())]

    async def stop(self) -> None:
        """Send the waiting events, and stop receiving."""
        self._stop_forwarding()
        if not self._tasks:
            return
        sending, receiving = self._tasks
        await self._waiting.put(None)
        await sending
        receiving.cancel()
        with suppress(asyncio.CancelledError):
            await receiving
        self._tasks = []

    def _take(self, namespace: str, event: Event) -> None:
        with suppress(asyncio.QueueFull):
            self._waiting.put_nowait((namespace, event))

    async def _send(self) -> None:
        while (taken := await self._waiting.get()) is not None:
            namespace, event = taken
            notice = {"process": self._process, "namespace": namespace, **_short(payload(event))}
            text = dump_text(notice)
            if len(text.encode()) > outbox.LONGEST:
                _log.warning("an event is too long for other processes: %s", event.name)
                continue
            try:
                await self._store.append(outbox.send, CHANNEL, text)
            except StoreError as error:
                _log.warning("other processes did not receive %s: %s", event.name, error)

    async def _receive(self) -> None:
        while True:
            try:
                async for text in self._store.listen(CHANNEL):
                    self._repeat(text)
            except StoreError as error:
                _log.warning("events of other processes are not received: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    def _repeat(self, text: str) -> None:
        notice = loads(text) if text else {"process": self._process}
        if notice.pop("process") == self._process:
            return
        event = from_payload(notice)
        if event is not None:
            namespace = notice["namespace"]
            self._events.within(namespace, listing_namespace(namespace)).repeat(event)


def _short(notice: dict[str, Any]) -> dict[str, Any]:
    """Return the payload with long fields cut; a session's name is never cut."""
    kept = dict(notice)
    for name in ("reason", "warnings", "steps"):
        if name in notice:
            kept[name] = _cut(notice[name])
    return kept


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_LONGEST_TEXT]
    return [_cut(each) for each in value[:_LONGEST_LIST]] if isinstance(value, tuple) else value
