"""The shared runner: on PostgreSQL every process works for all, through procrastinate.

A process that sees something due in the outbox puts a job in for its kind and session, and a worker
that is free does it: one at a time for a session, in all processes together. A job holds ids and
nothing else. When to try again is for the outbox alone to say, so a job never fails: it ends, and
what it could not do becomes due again. The job of a worker whose heart stopped is taken away.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from importlib.resources import files
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING
from uuid import uuid4

from enfold.errors import ConfigError, StoreError, StoreUnavailableError, facts
from enfold.queue.work import OutboxWork
from enfold.records import SessionKey
from enfold.store import catalog, outbox
from enfold.store import outbox as leases
from enfold.store.database import Database
from enfold.store.store import Store

_SCOPE, _STEPS = "queue", "procrastinate"
"""Where in the table of settings it is kept which steps were taken."""


def lay_tables(db: Database) -> None:
    """Make the tables, or take the steps that are missing."""
    from procrastinate.schema import SchemaManager

    steps = _steps()
    if steps.keys() <= (_taken(db) or set()):
        return
    db.rows("lock_migrations")
    taken = _taken(db)
    if taken is None:
        if db.row("has_jobs"):
            return
        _run(db, SchemaManager.get_schema())
        taken = set(steps)
    for name in sorted(steps.keys() - taken):
        _run(db, steps[name])
    catalog.put_setting(db, _SCOPE, _STEPS, sorted(taken | steps.keys()))


def _taken(db: Database) -> set[str] | None:
    """The names of the steps that were taken; None if it was not us who laid the tables."""
    taken = catalog.settings(db, _SCOPE).get(_STEPS)
    return None if taken is None else set(taken)


def _steps() -> dict[str, str]:
    folder = files("procrastinate.sql") / "migrations"
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }


def _run(db: Database, script: str) -> None:
    """Run several statements as one, which is how a prepared one wants them."""
    db.run_statements([f"DO $enfold$ BEGIN EXECUTE $steps${script}$steps$; END $enfold$"])


if TYPE_CHECKING:
    from procrastinate import App

NAME = "enfold"
"""Of the queue and of the task in it."""

_CONNECTIONS = 2
_CONNECTION_SECONDS = 3.0
_AT_ONCE = 8
_SWEEP_SECONDS = 2.0
_POLL_SECONDS = 1.0
"""A job that waits for another of its session is not announced when that ends."""
_PATIENCE_SECONDS = 1.0
"""A process that is gone again before never opens the queue, unless it has work for it."""
_AGAIN_SECONDS = 1.0
_CLOSING_SECONDS = 10.0
_STALLED_SECONDS = 30.0

_log = logging.getLogger("enfold.queue")


class SharedRunner:
    """A worker of this process, and a look into the outbox every few seconds."""

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
        """Work until `stop`."""
        self._work = work
        self._task = asyncio.create_task(self._run(work), name="enfold queue")

    def wake(self) -> None:
        """There may be something to do."""
        self._wake.set()

    async def stop(self) -> None:
        """Finish what is under way, then what is to be done before closing, within a time."""
        if self._task is None or self._work is None:
            return
        self._stopping = True
        self._wake.set()
        await self._task
        self._task = None
        try:
            await _finish(self._work)
        except StoreError as error:
            _log.warning("the outbox is left to the next process: %s", error)

    async def _run(self, work: OutboxWork) -> None:
        await self._sleep(_PATIENCE_SECONDS)
        while not self._stopping:
            try:
                await self._serve(work)
            except StoreError as error:
                self.status = facts(error).code
                _log.warning("the queue is out of reach: %s", error)
                self._wake.clear()
                await self._sleep(_AGAIN_SECONDS)

    async def _serve(self, work: OutboxWork) -> None:
        """A worker, until it is to stop or the database is lost."""
        from procrastinate.exceptions import ConnectorException

        await self._store.write(lay_tables)
        app = self._app(work)
        try:
            with self._store.translating():
                async with app.open_async():
                    await self._with_worker(app)
        except ConnectorException:
            # What it says may quote an address; the store says the same without.
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
        """Put in jobs for what is due, and take away those that nobody does any more."""
        from procrastinate.exceptions import AlreadyEnqueued
        from procrastinate.jobs import Status

        for kind, session in await self._store.read(outbox.due):
            lock = f"{kind}:{session}"
            job = app.configure_task(NAME, queue=NAME, lock=lock, queueing_lock=lock)
            with suppress(AlreadyEnqueued):
                await job.defer_async(kind=kind, session=session)
        # One process looks for all of them.
        lease = "queue:stalled"
        if await self._store.write(leases.acquire, lease, self._holder, seconds=self._stalled):
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
            """What is due of a kind in a session; a kind that only a newer process knows waits."""
            if kind in work.duties:
                await work.do(kind, session)

        return app

    async def _sleep(self, seconds: float) -> None:
        """For so long, unless there is something to do."""
        if self._stopping:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)


async def _finish(work: OutboxWork) -> None:
    """What is to be done before closing; the rest is left to others after a while."""
    deadline = monotonic() + _CLOSING_SECONDS
    for kind, duty in work.duties.items():
        while duty.before_closing and monotonic() < deadline and await work.do_some(kind):
            pass
