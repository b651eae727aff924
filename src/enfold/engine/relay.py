"""The relay: events of this process told to the others that share its database, and theirs here.

A notice says what an event says and in which namespace, never what was said in the session. One
that cannot be sent or received is lost and not repeated: a process that needs to
know a session's state reads it.
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
_AGAIN_SECONDS = 1.0

_log = logging.getLogger("enfold.engine")


class Relay:
    """Between the events of a process and those of the others."""

    def __init__(self, store: Store, events: Events) -> None:
        self._store = store
        self._events = events
        self._process = uuid4().hex
        self._waiting: asyncio.Queue[tuple[str, Event] | None] = asyncio.Queue(_MANY)
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_forwarding: Callable[[], object] = lambda: None

    def start(self) -> None:
        """Send and hear until `stop`, where there is a way to others."""
        if not outbox.can_send(self._store):
            return
        self._stop_forwarding = self._events.forward(self._take)
        self._tasks = [asyncio.create_task(each) for each in (self._send(), self._hear())]

    async def stop(self) -> None:
        """Send what waits, and hear no more."""
        self._stop_forwarding()
        if not self._tasks:
            return
        sending, hearing = self._tasks
        await self._waiting.put(None)
        await sending
        hearing.cancel()
        with suppress(asyncio.CancelledError):
            await hearing
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
                _log.warning("other processes were not told of %s: %s", event.name, error)

    async def _hear(self) -> None:
        while True:
            try:
                async for text in outbox.listen(self._store, CHANNEL):
                    self._repeat(text)
            except StoreError as error:
                _log.warning("other processes are not heard: %s", error)
            await asyncio.sleep(_AGAIN_SECONDS)

    def _repeat(self, text: str) -> None:
        notice = loads(text) if text else {"process": self._process}
        if notice.pop("process") == self._process:
            return
        event = from_payload(notice)
        if event is not None:
            namespace = notice["namespace"]
            self._events.within(namespace, listing_namespace(namespace)).repeat(event)


def _short(notice: dict[str, Any]) -> dict[str, Any]:
    """The payload with what may be long in it cut; a session's name is never cut."""
    kept = dict(notice)
    for name in ("reason", "warnings", "steps"):
        if name in notice:
            kept[name] = _cut(notice[name])
    return kept


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_LONGEST_TEXT]
    return [_cut(each) for each in value[:_LONGEST_LIST]] if isinstance(value, tuple) else value
