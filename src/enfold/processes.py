"""Worker processes: each runs tasks on items that it gets through a pipe, and returns the results.

They end with this process, in any case, and write no files. A `LowPriorityProcess` takes long
computations out of a server, whose interpreter would run no request meanwhile.
"""

from __future__ import annotations

import asyncio
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
from time import monotonic
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar


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


Params = ParamSpec("Params")
Result = TypeVar("Result")

_NICENESS = 5
_IDLE_SECONDS = 60.0
"""The time without work after which the process ends, so that its memory is free again."""


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls of a function."""

    function: Callable[..., Any]

    def do(self, arguments: tuple[Any, ...]) -> Any:
        """Return the result of one call."""
        return self.function(*arguments)


class LowPriorityProcess:
    """A process for long computations, which leaves the processor to everything else.

    It is started when it is needed for the second time, because a start takes as long as a few
    computations, and ends after some time without work.
    """

    def __init__(self, prepare: Callable[[], object], idle_seconds: float = _IDLE_SECONDS) -> None:
        """`prepare` is called in a new process before it is ready."""
        self._prepare = prepare
        self._idle_seconds = idle_seconds
        self._waiting: SimpleQueue[Row | None] | None = None
        self._prepared: Future[Any] = Future()
        self._latest = self._prepared
        """The result of the latest call, which the process computes last."""
        self._needed_at = -idle_seconds
        self._used_at = 0.0
        self._next_start = 0.0
        """Time before which it is not started again: a start that fails must not be repeated."""
        self._end: asyncio.TimerHandle | None = None

    def start(self) -> bool:
        """Return True if it is ready; else start it, unless it is starting or has just failed."""
        if self._waiting is None:
            now = monotonic()
            is_second = now < self._needed_at + self._idle_seconds
            self._needed_at = now
            if now < self._next_start or not is_second:
                return False
            self._next_start = now + self._idle_seconds
            self._waiting = SimpleQueue()
            self._latest = self._prepared = Future()
            self._waiting.put(_row(_prepare, (self._prepare,), self._prepared))
            # To start a process takes a moment, in which this thread has other work.
            Thread(target=_run_worker, args=(self._waiting,), daemon=True).start()
            self._look_later()
        if not self._prepared.done():
            return False
        if self._prepared.exception() is not None:
            self.stop()
            return False
        return True

    async def run(
        self, function: Callable[Params, Result], *arguments: Params.args, **_none: Params.kwargs
    ) -> Result:
        """Return the result of a function that can be imported.

        Raise its error, or `BrokenProcessPool` if the process has ended.
        """
        future: Future[Result] = Future()
        row = await asyncio.to_thread(_row, function, arguments, future)
        if self._waiting is None:
            raise BrokenProcessPool("it has ended")
        self._waiting.put(row)
        self._latest = future
        self._used_at = monotonic()
        try:
            # The thread that passes the calls sets the result, also if nobody waits for it.
            return await asyncio.shield(asyncio.wrap_future(future))
        except BrokenProcessPool:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process after what it does."""
        if self._waiting is not None:
            self._waiting.put(None)
            self._waiting = None
        if self._end is not None:
            self._end.cancel()

    def _look_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._end = loop.call_later(self._idle_seconds, self._stop_if_idle)

    def _stop_if_idle(self) -> None:
        is_idle = monotonic() >= self._used_at + self._idle_seconds
        if is_idle and self._prepared.done() and self._latest.done():
            self.stop()
        else:
            self._look_later()


def _run_worker(waiting: SimpleQueue[Row | None]) -> None:
    process, thread = _start_worker(waiting)
    thread.join()
    process.join()


def _prepare(work: Callable[[], object]) -> None:
    """Do the work, and only then lower the priority: on a busy machine it would take long."""
    work()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)


def _row(function: Callable[..., Any], arguments: tuple[Any, ...], future: Future[Any]) -> Row:
    return pickle.dumps(_Calls(function)), pickle.dumps(arguments), future
