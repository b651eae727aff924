"""The runner on PostgreSQL: all processes share the work, through procrastinate.

A process that finds a due entry in the outbox adds a job for its kind and session, and any free
worker runs it: one job at a time per session, over all processes. A job contains only ids. The
outbox decides when an entry is tried again, so a job never fails: it ends, and entries that failed
become due again after a delay that grows with each attempt. The job of a worker without a heartbeat
is deleted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from itertools import groupby
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

from enfold.errors import ConfigError, StoreError, StoreUnavailableError, facts
from enfold.records import OutboxEntry, SessionKey
from enfold.store import catalog, outbox
from enfold.store.database import Database
from enfold.store.store import Store

_FIRST_RETRY_SECONDS = 1.0
_LONGEST_ERROR = 500

_log = logging.getLogger("enfold.queue")

HandleEntries: TypeAlias = Callable[[Sequence[OutboxEntry]], Awaitable[None]]
"""Handles entries of one kind and one session, oldest first. An error puts them back."""


@dataclass(frozen=True, slots=True)
class WorkHandler:
    """The handler of one kind of work, and its batches."""

    do: HandleEntries
    batch: int = 100
    """The entries of a batch, which are claimed together."""
    seconds: float = 60.0
    """The time after which another process may claim the batch."""
    at_once: int = 1
    """The batches that one process handles at the same time."""
    before_closing: bool = True
    """True if due entries are handled before the process ends, False if they are left."""


class OutboxWork:
    """The handlers of one process by kind of work."""

    def __init__(self, store: Store, handlers: Mapping[str, WorkHandler]) -> None:
        self._store = store
        self._holder = uuid4().hex
        self.handlers = handlers

    async def has_due(self) -> bool:
        """Return True if an entry that this process can handle is due."""
        found = await self._store.read(outbox.due)
        return any(kind in self.handlers for kind, _ in found)

    async def do(self, kind: str, session: SessionKey | None = None) -> int:
        """Handle all due entries of a kind, in one session or in all; return their number."""
        total = 0
        while number := await self.do_some(kind, session):
            total += number
        return total

    async def do_some(self, kind: str, session: SessionKey | None = None) -> int:
        """Handle one batch; return the number of its entries."""
        handler = self.handlers[kind]
        entries = await self._store.write(
            outbox.claim,
            self._holder,
            kind=kind,
            session=session,
            limit=handler.batch,
            seconds=handler.seconds,
        )
        entries.sort(key=lambda entry: entry.session)
        for _, group in groupby(entries, key=lambda entry: entry.session):
            await self._hand_over(handler, list(group))
        return len(entries)

    async def _hand_over(self, handler: WorkHandler, entries: Sequence[OutboxEntry]) -> None:
        try:
            await handler.do(entries)
        # The handler may be foreign code: whatever it raises, its entries must not be lost.
        except Exception as error:  # noqa: BLE001
            kind, cause = entries[0].kind, type(error).__name__[:_LONGEST_ERROR]
            _log.warning("background work failed: kind=%s cause=%s", kind, cause)

            def put_back(db: Database) -> None:
                for entry in entries:
                    wait = min(outbox.LONGEST_DELAY, _FIRST_RETRY_SECONDS * 2**entry.attempts)
                    outbox.failed(db, entry.id, self._holder, error=cause, retry_in=wait)

            await self._store.write(put_back)
        else:
            await self._store.write(outbox.done, [entry.id for entry in entries])


_SCOPE, _STEPS = "queue", "procrastinate"
"""Scope and name of the setting that lists the migrations that were applied."""


def create_tables(db: Database) -> None:
    """Create procrastinate's tables, or apply its missing migrations."""
    from procrastinate.schema import SchemaManager

    scripts = {
        file.name: file.read_text(encoding="utf-8")
        for file in (files("procrastinate.sql") / "migrations").iterdir()
        if file.name.endswith(".sql")
    }
    if scripts.keys() <= (_applied(db) or set()):
        return
    db.rows("lock_migrations")
    applied = _applied(db)
    if applied is None:
        if db.row("has_jobs"):
            return
        _run(db, SchemaManager.get_schema())
        applied = set(scripts)
    for name in sorted(scripts.keys() - applied):
        _run(db, scripts[name])
    catalog.put_setting(db, _SCOPE, _STEPS, sorted(applied | scripts.keys()))


def _applied(db: Database) -> set[str] | None:
    """Return the names of the applied migrations; None if enfold did not create the tables."""
    applied = catalog.settings(db, _SCOPE).get(_STEPS)
    return None if applied is None else set(applied)


def _run(db: Database, script: str) -> None:
    """Run the statements of a script as one: a prepared statement cannot have several."""
    db.run_statements([f"DO $enfold$ BEGIN EXECUTE $steps${script}$steps$; END $enfold$"])


if TYPE_CHECKING:
    from procrastinate import App

NAME = "enfold"
"""The name of the queue and of its task."""

_CONNECTIONS = 2
_CONNECTION_SECONDS = 3.0
_AT_ONCE = 8
_SWEEP_SECONDS = 2.0
_POLL_SECONDS = 1.0
"""Needed because the end of a job does not announce the next one of its session."""
_PATIENCE_SECONDS = 1.0
"""A process that ends within this time never opens the queue, unless it has work."""
_AGAIN_SECONDS = 1.0
_CLOSING_SECONDS = 10.0
_STALLED_SECONDS = 30.0


class SharedRunner:
    """A worker in this process, and a check of the outbox every few seconds."""

    name = "procrastinate"

    def __init__(
        self,
        store: Store,
        url: str,
        *,
        sweep: float = _SWEEP_SECONDS,
        stalled: float = _STALLED_SECONDS,
    ) -> None:
        if find_spec("procrastinate") is None:
            raise ConfigError(
                "PostgreSQL needs procrastinate, which is not installed; "
                "install enfold[postgres], or use an sqlite:/// address"
            )
        self._store = store
        self._url = url
        self._sweep_seconds = sweep
        self._stalled = stalled
        self._holder = uuid4().hex
        self._wake = asyncio.Event()
        self._stopping = False
        self._work: OutboxWork | None = None
        self._task: asyncio.Task[None] | None = None
        self.status = "starting"

    def start(self, work: OutboxWork) -> None:
        """Handle entries until `stop`."""
        self._work = work
        self._task = asyncio.create_task(self._run(work), name="enfold queue")

    def wake(self) -> None:
        """Look for entries now."""
        self._wake.set()

    async def stop(self) -> None:
        """Finish the running jobs, then the entries that must be handled before closing."""
        if self._task is None or self._work is None:
            return
        self._stopping = True
        self._wake.set()
        await self._task
        self._task = None
        deadline = monotonic() + _CLOSING_SECONDS
        try:
            for kind, handler in self._work.handlers.items():
                while handler.before_closing and monotonic() < deadline:
                    if not await self._work.do_some(kind):
                        break
        except StoreError as error:
            _log.warning("entries of the outbox are left to the next process: %s", error)

    async def _run(self, work: OutboxWork) -> None:
        await self._sleep(_PATIENCE_SECONDS)
        while not self._stopping:
            try:
                await self._serve(work)
            except StoreError as error:
                self.status = facts(error).code
                _log.warning("the queue cannot be reached: %s", error)
                self._wake.clear()
                await self._sleep(_AGAIN_SECONDS)

    async def _serve(self, work: OutboxWork) -> None:
        """Run a worker until `stop` or until the connection is lost."""
        from procrastinate.exceptions import ConnectorException

        await self._store.write(create_tables)
        app = self._app(work)
        try:
            with self._store.translating():
                async with app.open_async():
                    await self._with_worker(app)
        except ConnectorException:
            # Its message may contain the database's URL, so the store's error replaces it.
            raise StoreUnavailableError("the connection was lost; try again") from None

    async def _with_worker(self, app: App) -> None:
        worker = asyncio.create_task(
            app.run_worker_async(
                queues=[NAME],
                concurrency=_AT_ONCE,
                delete_jobs="always",
                install_signal_handlers=False,
                fetch_job_polling_interval=_POLL_SECONDS,
                update_heartbeat_interval=self._stalled / 3,
                stalled_worker_timeout=self._stalled,
            ),
            name="enfold worker",
        )
        self.status = "ok"
        try:
            while not (self._stopping or worker.done()):
                self._wake.clear()
                await self._sweep(app)
                waiting = asyncio.ensure_future(self._wake.wait())
                await asyncio.wait(
                    {waiting, worker},
                    timeout=self._sweep_seconds,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                waiting.cancel()
        finally:
            worker.cancel()  # which lets its jobs finish
            with suppress(asyncio.CancelledError):
                await worker

    async def _sweep(self, app: App) -> None:
        """Add jobs for due entries, and delete the jobs of dead workers."""
        from procrastinate.exceptions import AlreadyEnqueued
        from procrastinate.jobs import Status

        for kind, session in await self._store.read(outbox.due):
            lock = f"{kind}:{session}"
            job = app.configure_task(NAME, queue=NAME, lock=lock, queueing_lock=lock)
            with suppress(AlreadyEnqueued):
                await job.defer_async(kind=kind, session=session)
        # One process checks for all of them.
        lease = "queue:stalled"
        if await self._store.write(outbox.acquire, lease, self._holder, seconds=self._stalled):
            for stalled in await app.job_manager.get_stalled_jobs(
                queue=NAME, seconds_since_heartbeat=self._stalled
            ):
                _log.warning("a worker died with job %s; its work becomes due again", stalled.id)
                await app.job_manager.finish_job(stalled, Status.FAILED, delete_job=True)

    def _app(self, work: OutboxWork) -> App:
        from procrastinate import App, PsycopgConnector

        connector = PsycopgConnector(
            conninfo=self._url, min_size=1, max_size=_CONNECTIONS, timeout=_CONNECTION_SECONDS
        )
        app = App(connector=connector)

        @app.task(name=NAME, queue=NAME)
        async def do(kind: str, session: SessionKey) -> None:
            """Handle the due entries; a kind that only a newer process knows is left."""
            if kind in work.handlers:
                await work.do(kind, session)

        return app

    async def _sleep(self, seconds: float) -> None:
        """Wait, unless there are entries to handle."""
        if self._stopping:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
