"""The queue: background work from the store's outbox.

The outbox has the entries and their times. A runner handles them: on SQLite in this process, on
PostgreSQL in any process that is free.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from enfold.errors import StoreError
from enfold.queue.shared import OutboxWork, SharedRunner, WorkHandler
from enfold.records import SessionKey
from enfold.store import outbox
from enfold.store.database import EngineName
from enfold.store.store import Store

IDLE_SECONDS = 1.0

_log = logging.getLogger("enfold.queue")


class LocalRunner:
    """Tasks in this process, one for each batch that may run at the same time.

    They wait until there is work: added here, added by another process, or due again.
    """

    name = "local"
    status = "ok"
    """`ok`, or the reason why no entry is handled now."""

    def __init__(self, *, idle: float = IDLE_SECONDS) -> None:
        self._idle = idle
        self._tasks: list[asyncio.Task[None]] = []
        self._wakes: list[asyncio.Event] = []
        self._stopped = asyncio.Event()

    def start(self, work: OutboxWork) -> None:
        """Handle entries until `stop`."""
        for kind, handler in work.handlers.items():
            for _ in range(handler.at_once):
                wake = asyncio.Event()
                self._wakes.append(wake)
                run = self._run(work, kind, handler, wake)
                self._tasks.append(asyncio.create_task(run, name=f"queue {kind}"))
        self._tasks.append(asyncio.create_task(self._watch(work), name="queue watch"))

    def wake(self) -> None:
        """Look for entries now."""
        for wake in self._wakes:
            wake.set()

    async def stop(self) -> None:
        """Finish the running batches and the entries that must be handled before closing."""
        self._stopped.set()
        self.wake()
        await asyncio.gather(*self._tasks)
        self._tasks.clear()
        self._wakes.clear()

    async def _run(
        self, work: OutboxWork, kind: str, handler: WorkHandler, wake: asyncio.Event
    ) -> None:
        while True:
            wake.clear()
            try:
                while handler.before_closing or not self._stopped.is_set():
                    if not await work.do_some(kind):
                        break
            except StoreError as error:
                _log.warning("the outbox cannot be read: %s", error)
            if self._stopped.is_set():
                return
            await wake.wait()

    async def _watch(self, work: OutboxWork) -> None:
        """Wake the tasks when entries are due; this only reads."""
        while not self._stopped.is_set():
            try:
                await asyncio.wait_for(self._stopped.wait(), self._idle)
            except TimeoutError:
                try:
                    if await work.has_due():
                        self.wake()
                except StoreError as error:
                    _log.warning("the outbox cannot be read: %s", error)


_RUNNERS: Mapping[EngineName, Callable[[Store, str], LocalRunner | SharedRunner]] = {
    "sqlite": lambda _store, _url: LocalRunner(),
    "postgresql": SharedRunner,
}


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The state of the queue."""

    runner: str
    status: str
    waiting: Mapping[str, int]
    """The number of waiting entries by kind of work."""
    failing: int
    """The number of these that have failed before; they are tried again."""


class Queue:
    """Background work. The URL is the store's, with its password if it has one."""

    def __init__(self, store: Store, url: str) -> None:
        self._store = store
        self._runner = _RUNNERS[store.engine](store, url)

    def start(self, handlers: Mapping[str, WorkHandler]) -> None:
        """Handle entries in the background until `stop`; `handlers` by kind of work."""
        self._runner.start(OutboxWork(self._store, handlers))

    async def put(self, kind: str, session: SessionKey, message: str) -> None:
        """Add an entry for a message, unless one of this kind is waiting already."""
        await self._store.write(outbox.enqueue, session, [message], kind)
        self.wake()

    def wake(self) -> None:
        """Look for entries now: one was added."""
        self._runner.wake()

    async def stop(self) -> None:
        """Finish the running batches. Other entries stay in the outbox for the next process."""
        await self._runner.stop()

    async def state(self) -> QueueStatus:
        """Return the state of the queue."""
        by_kind = await self._store.read(outbox.waiting_by_kind)
        return QueueStatus(
            self._runner.name,
            self._runner.status,
            {kind: waiting for kind, (waiting, _) in by_kind.items()},
            sum(failing for _, failing in by_kind.values()),
        )
