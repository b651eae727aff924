"""Workers: this process, a pool of processes, or Daft."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeAlias

from enfold.bulk.tasks import BulkItem, BulkTask, ItemResult
from enfold.errors import ConfigError
from enfold.processes import ItemRunner, Row, run_item, settle, submit_to, worker_processes
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


@contextmanager
def local_workers(jobs: int) -> Iterator[WorkerPool]:
    """Use this process, or a pool of processes on this machine."""
    if jobs == 1:
        yield WorkerPool(run_item, QUEUED_PER_WORKER)
        return
    with worker_processes(jobs) as submit:
        yield WorkerPool(submit, QUEUED_PER_WORKER * jobs)


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
    waiting: SimpleQueue[Row | None] = SimpleQueue()
    thread = Thread(target=_serve, args=(waiting, jobs), name="enfold daft", daemon=True)
    thread.start()
    yield WorkerPool(submit_to(waiting), queue_size=2 * ROWS, memory=MEMORY)
    # Not reached if the run was abandoned: then no result is awaited.
    waiting.put(None)
    thread.join()


def _serve(waiting: SimpleQueue[Row | None], jobs: int) -> None:
    goes_on = True
    while goes_on:
        rows, goes_on = _gather(waiting)
        for work in dict.fromkeys(row[0] for row in rows):
            _settle(work, [row for row in rows if row[0] == work], jobs)


def _gather(waiting: SimpleQueue[Row | None]) -> tuple[list[Row], bool]:
    """Return the waiting rows, and False after the last."""
    rows: list[Row] = []
    while len(rows) < ROWS:
        try:
            row = waiting.get(timeout=_GATHERING_SECONDS if rows else None)
        except Empty:
            break
        if row is None:
            return rows, False
        rows.append(row)
    return rows, True


def _settle(work: bytes, rows: Sequence[Row], jobs: int) -> None:
    try:
        results = _results(work, [unit for _, unit, _ in rows], jobs)
    # Any error of the library must reach the waiting futures.
    except Exception as error:  # noqa: BLE001
        lost = BrokenProcessPool(type(error).__name__)
        results = dict.fromkeys(range(len(rows)), lost)
    for number, (_, _, future) in enumerate(rows):
        settle(future, results[number])


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
