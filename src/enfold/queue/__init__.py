"""The queue: work that nobody waits for, done from the store's outbox.

The outbox says what is to be done and when. Who looks is a runner: in this process on SQLite, and
on PostgreSQL whichever process has time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from enfold.errors import StoreError
from enfold.queue.shared import SharedRunner
from enfold.queue.work import OutboxWork, WorkHandler
from enfold.records import SessionKey
from enfold.store import outbox
from enfold.store.database import EngineName
from enfold.store.store import Store

IDLE_SECONDS = 1.0

_log = logging.getLogger("enfold.queue")


class LocalRunner:
    """Tasks in this process, one for each batch that may be done at the same time."""

    name = "local"
    status = "ok"

    def __init__(self, *, idle: float = IDLE_SECONDS) -> None:
        self._idle = idle
        self._tasks: list[asyncio.Task[None]] = []
        self._wakes: list[asyncio.Event] = []
        self._stopping = False

    def start(self, work: OutboxWork) -> None:
        """Work until `stop`."""
        for kind, duty in work.duties.items():
            for _ in range(duty.at_once):
                wake = asyncio.Event()
                self._wakes.append(wake)
                task = asyncio.create_task(self._run(work, kind, duty, wake), name=f"queue {kind}")
                self._tasks.append(task)

    def wake(self) -> None:
        """There may be something to do."""
        for wake in self._wakes:
            wake.set()

    async def stop(self) -> None:
        """Finish what is under way and what is to be done before closing."""
        self._stopping = True
        self.wake()
        await asyncio.gather(*self._tasks)
        self._tasks.clear()
        self._wakes.clear()

    async def _run(
        self, work: OutboxWork, kind: str, duty: WorkHandler, wake: asyncio.Event
    ) -> None:
        while True:
            wake.clear()
            try:
                while self._goes_on(duty) and await work.do_some(kind):
                    pass
            except StoreError as error:
                _log.warning("the outbox cannot be read: %s", error)
            if self._stopping:
                return
            try:
                await asyncio.wait_for(wake.wait(), self._idle)
            except TimeoutError:
                continue

    def _goes_on(self, duty: WorkHandler) -> bool:
        return duty.before_closing or not self._stopping


class Runner(Protocol):
    """Whoever looks into the outbox."""

    name: str
    status: str
    """`ok`, or why nothing is done at the moment."""

    def start(self, work: OutboxWork) -> None: ...
    def wake(self) -> None: ...
    async def stop(self) -> None: ...


_RUNNERS: Mapping[EngineName, Callable[[Store, str], Runner]] = {
    "sqlite": lambda _store, _url: LocalRunner(),
    "postgresql": SharedRunner,
}


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """How the queue stands."""

    runner: str
    status: str
    waiting: Mapping[str, int]
    """Entries that wait, by kind of work."""
    failing: int
    """How many of these have failed before and will be tried again."""


class Queue:
    """Work that nobody waits for. The address is the store's own, with its password if any."""

    def __init__(self, store: Store, url: str) -> None:
        self._store = store
        self._runner = _RUNNERS[store.engine](store, url)

    def start(self, duties: Mapping[str, WorkHandler]) -> None:
        """Work in the background until `stop`; `duties` by kind of work."""
        self._runner.start(OutboxWork(self._store, duties))

    async def put(self, kind: str, session: SessionKey, message: str) -> None:
        """Have something done for a message; once for each kind, however often it is asked."""
        await self._store.write(outbox.enqueue, session, [message], kind)
        self.wake()

    def wake(self) -> None:
        """Something was put into the outbox."""
        self._runner.wake()

    async def stop(self) -> None:
        """Finish what is under way. What is left stays in the outbox for the next process."""
        await self._runner.stop()

    async def state(self) -> QueueStatus:
        """How it stands."""
        by_kind = await self._store.read(outbox.waiting_by_kind)
        return QueueStatus(
            self._runner.name,
            self._runner.status,
            {kind: waiting for kind, (waiting, _) in by_kind.items()},
            sum(failing for _, failing in by_kind.values()),
        )
