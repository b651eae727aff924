"""The local runner: this process looks into the outbox itself. What SQLite needs, and all it does.

It is woken when something was put in, and looks now and then for what failed or was left behind.
"""

from __future__ import annotations

import asyncio
import logging

from enfold.errors import StoreError
from enfold.queue.work import Duty, Work

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

    def start(self, work: Work) -> None:
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

    async def _run(self, work: Work, kind: str, duty: Duty, wake: asyncio.Event) -> None:
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

    def _goes_on(self, duty: Duty) -> bool:
        return duty.before_closing or not self._stopping
