"""Worker processes: each runs tasks on items that it gets through a pipe, and returns the results.

They end with this process, in any case, and write no files.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from threading import Thread
from typing import Any, Protocol, TypeAlias


class ItemTask(Protocol):
    """A task that can be pickled."""

    def do(self, unit: Any) -> Any:
        """Return the result of one item, or raise an error."""
        ...


Submit: TypeAlias = "Callable[[ItemTask, Any], Future[Any]]"
"""Submits an item of a task; the future has its result or the error."""
Row: TypeAlias = "tuple[bytes, bytes, Future[Any]]"
"""A pickled task, its pickled item and the future of the result."""


@contextmanager
def worker_processes(jobs: int) -> Iterator[Submit]:
    """Start processes; if the block raises an error, they are killed."""
    waiting: SimpleQueue[Row | None] = SimpleQueue()
    workers: list[tuple[BaseProcess, Thread]] = []
    done = False
    try:
        workers.extend(_start_worker(waiting) for _ in range(jobs))
        yield submit_to(waiting)
        done = True
    finally:
        for process, _ in workers:
            if not done:
                process.kill()
            waiting.put(None)
        for process, thread in workers:
            thread.join()
            process.join()


def submit_to(waiting: SimpleQueue[Row | None]) -> Submit:
    """Return a function that puts items into a queue."""
    pickled: dict[int, bytes] = {}

    def submit(work: ItemTask, unit: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if id(work) not in pickled:
            pickled[id(work)] = pickle.dumps(work)
        waiting.put((pickled[id(work)], pickle.dumps(unit), future))
        return future

    return submit


def _start_worker(waiting: SimpleQueue[Row | None]) -> tuple[BaseProcess, Thread]:
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


def _pass_rows(worker: Connection, waiting: SimpleQueue[Row | None]) -> None:
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
                settle(future, pickle.loads(answer))  # noqa: S301 - from our process


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


def run_item(work: ItemTask, unit: Any) -> Future[Any]:
    """Process an item here and return a finished future."""
    future: Future[Any] = Future()
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


@dataclass
class ItemRunner:
    """Processes rows in a process."""

    work: bytes

    def __post_init__(self) -> None:
        self._work: ItemTask = pickle.loads(self.work)  # noqa: S301 - our own, from above

    def __call__(self, unit: bytes) -> bytes:
        """Return the result or the error, which is raised where the result is taken."""
        done = run_item(self._work, pickle.loads(unit))  # noqa: S301 - as above
        return pickle.dumps(done.exception() or done.result())


def settle(future: Future[Any], result: Any) -> None:
    """Set a future to a result, or to the error that it is."""
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
