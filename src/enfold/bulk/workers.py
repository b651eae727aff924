"""Workers: this process, a pool of processes, or Daft.

Worker processes end with this process, in any case, and write no files.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeAlias, cast

from enfold.bulk.tasks import BulkItem, BulkTask, ItemResult
from enfold.errors import ConfigError
from enfold.settings import quieten_libraries

Submit: TypeAlias = Callable[[BulkTask, BulkItem], "Future[ItemResult]"]

QUEUED_PER_WORKER = 4
"""Queued conversations per process: enough that no process waits for reading."""
WORTH_A_PROCESS = 2 << 20
"""Bytes per process. Starting a process takes a second; it does not pay for less."""


def cores() -> int:
    """Return the number of usable cores."""
    allowed = getattr(os, "sched_getaffinity", None)  # where there is such a thing
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def jobs_for(size: int) -> int:
    """Return the number of processes worth starting for `size` bytes."""
    return max(1, min(cores(), size // WORTH_A_PROCESS))


@dataclass(frozen=True, slots=True)
class WorkerPool:
    """A way to submit items, and its limits."""

    submit: Submit
    """Submits an item; the future has its result or the error."""
    queue_size: int
    """Largest number of items in progress."""
    memory: int | None = None
    """Largest number of their bytes. None: no limit."""


_Row: TypeAlias = "tuple[bytes, bytes, Future[ItemResult]]"
"""A pickled task, its pickled item and the future of the result."""


@contextmanager
def local_workers(jobs: int) -> Iterator[WorkerPool]:
    """Use this process, or a pool of processes on this machine."""
    if jobs == 1:
        yield WorkerPool(run_item, QUEUED_PER_WORKER)
        return
    waiting: SimpleQueue[_Row | None] = SimpleQueue()
    workers: list[tuple[BaseProcess, Thread]] = []
    done = False
    try:
        workers.extend(_start_worker(waiting) for _ in range(jobs))
        yield WorkerPool(_submit_to(waiting), QUEUED_PER_WORKER * jobs)
        done = True
    finally:
        for process, _ in workers:
            if not done:
                process.kill()
            waiting.put(None)
        for process, thread in workers:
            thread.join()
            process.join()


def _submit_to(waiting: SimpleQueue[_Row | None]) -> Submit:
    pickled: dict[int, bytes] = {}

    def submit(work: BulkTask, unit: BulkItem) -> Future[ItemResult]:
        future: Future[ItemResult] = Future()
        if id(work) not in pickled:
            pickled[id(work)] = pickle.dumps(work)
        waiting.put((pickled[id(work)], pickle.dumps(unit), future))
        return future

    return submit


def _start_worker(waiting: SimpleQueue[_Row | None]) -> tuple[BaseProcess, Thread]:
    """Start a process, and the thread that passes rows to it.

    Each process has a pipe that no other process holds. So the thread notices the process's end
    even in the middle of a result; with a pipe that processes share, it would wait forever.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    thread = Thread(target=_pass_rows, args=(ours, waiting), name="enfold worker", daemon=True)
    thread.start()
    return process, thread


def _pass_rows(worker: Connection, waiting: SimpleQueue[_Row | None]) -> None:
    """Send each row to the worker and set its future; close the pipe after the last one."""
    with worker:
        while (row := waiting.get()) is not None:
            work, unit, future = row
            try:
                worker.send((work, unit))
                answer = worker.recv_bytes()
            except (EOFError, OSError) as error:
                future.set_exception(BrokenProcessPool(type(error).__name__))
            else:
                _set(future, pickle.loads(answer))  # noqa: S301 - from our process


def _work(parent: Connection) -> None:
    """Process rows until the pipe is closed; ignore interrupts and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_die_with_parent, daemon=True).start()
    runner: ItemRunner | None = None
    with suppress(EOFError, OSError):
        while True:
            work, unit = parent.recv()
            if runner is None or runner.work != work:
                runner = ItemRunner(work)
            parent.send_bytes(runner(unit))


def run_item(work: BulkTask, unit: BulkItem) -> Future[ItemResult]:
    """Process an item here and return a finished future."""
    future: Future[ItemResult] = Future()
    try:
        future.set_result(work.do(unit))
    except Exception as error:  # noqa: BLE001 - it is raised where the result is taken
        future.set_exception(error)
    return future


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


ROWS = 10_000
"""Largest number of rows in one batch."""
MEMORY = 256 << 20
"""Largest number of bytes in progress."""
_GATHERING_SECONDS = 0.1
_SHARES = 8
"""Parts per process into which rows are divided, so that all end together."""


@contextmanager
def daft_workers(jobs: int) -> Iterator[WorkerPool]:
    """Pass items to Daft as rows; `jobs` processes on this machine, or a cluster."""
    if find_spec("daft") is None:
        raise ConfigError(
            "--engine daft needs Daft, which is not installed; install enfold[bulk], or leave the "
            "option out"
        )
    quieten_libraries()
    waiting: SimpleQueue[_Row | None] = SimpleQueue()
    thread = Thread(target=_serve, args=(waiting, jobs), name="enfold daft", daemon=True)
    thread.start()
    yield WorkerPool(_submit_to(waiting), queue_size=2 * ROWS, memory=MEMORY)
    # Not reached if the run was abandoned: then no result is awaited.
    waiting.put(None)
    thread.join()


@dataclass
class ItemRunner:
    """Processes rows in a process."""

    work: bytes

    def __post_init__(self) -> None:
        self._work = cast("BulkTask", pickle.loads(self.work))  # noqa: S301 - our own, from above

    def __call__(self, unit: bytes) -> bytes:
        """Return the result or the error, which is raised where the result is taken."""
        done = run_item(self._work, pickle.loads(unit))  # noqa: S301 - as above
        return pickle.dumps(done.exception() or done.result())


def _serve(waiting: SimpleQueue[_Row | None], jobs: int) -> None:
    goes_on = True
    while goes_on:
        rows, goes_on = _gather(waiting)
        for work in dict.fromkeys(row[0] for row in rows):
            _settle(work, [row for row in rows if row[0] == work], jobs)


def _gather(waiting: SimpleQueue[_Row | None]) -> tuple[list[_Row], bool]:
    """Return the waiting rows, and False after the last."""
    rows: list[_Row] = []
    while len(rows) < ROWS:
        try:
            row = waiting.get(timeout=_GATHERING_SECONDS if rows else None)
        except Empty:
            break
        if row is None:
            return rows, False
        rows.append(row)
    return rows, True


def _settle(work: bytes, rows: Sequence[_Row], jobs: int) -> None:
    try:
        results = _results(work, [unit for _, unit, _ in rows], jobs)
    # Any error of the library must reach the waiting futures.
    except Exception as error:  # noqa: BLE001
        lost = BrokenProcessPool(type(error).__name__)
        results = dict.fromkeys(range(len(rows)), lost)
    for number, (_, _, future) in enumerate(rows):
        _set(future, results[number])


def _set(future: Future[ItemResult], result: ItemResult | Exception) -> None:
    if isinstance(result, ItemResult):
        future.set_result(result)
    else:
        future.set_exception(result)


def _results(work: bytes, units: Sequence[bytes], jobs: int) -> dict[int, ItemResult | Exception]:
    """Return the result or the error of each row."""
    import daft

    doer = daft.cls(ItemRunner, use_process=True, max_concurrency=jobs)
    share = max(1, len(units) // (jobs * _SHARES))
    frame = daft.from_pydict({"row": list(range(len(units))), "unit": list(units)})
    frame = frame.into_batches(share)
    frame = frame.with_column("done", doer(work)(frame["unit"])).select("row", "done")
    done = frame.to_pydict()
    pairs = zip(done["row"], done["done"], strict=True)
    return {row: pickle.loads(piece) for row, piece in pairs}  # noqa: S301 - from Doer
