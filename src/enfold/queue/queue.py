"""The queue of a store: where work is put in, who does it, and how it stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from enfold.queue.local import LocalRunner
from enfold.queue.shared import SharedRunner
from enfold.queue.work import Duty, Work
from enfold.store import outbox
from enfold.store.queries import EngineName
from enfold.store.records import SessionKey
from enfold.store.store import Store


class Runner(Protocol):
    """Whoever looks into the outbox."""

    name: str
    status: str
    """`ok`, or why nothing is done at the moment."""

    def start(self, work: Work) -> None: ...
    def wake(self) -> None: ...
    async def stop(self) -> None: ...


_RUNNERS: Mapping[EngineName, Callable[[Store, str], Runner]] = {
    "sqlite": lambda _store, _url: LocalRunner(),
    "postgresql": SharedRunner,
}


@dataclass(frozen=True, slots=True)
class State:
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

    def start(self, duties: Mapping[str, Duty]) -> None:
        """Work in the background until `stop`; `duties` by kind of work."""
        self._runner.start(Work(self._store, duties))

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

    async def state(self) -> State:
        """How it stands."""
        by_kind = await self._store.read(outbox.waiting_by_kind)
        return State(
            self._runner.name,
            self._runner.status,
            {kind: waiting for kind, (waiting, _) in by_kind.items()},
            sum(failing for _, failing in by_kind.values()),
        )
