"""The crew: who does the work, this process or several others.

The others leave nothing behind: they die with this one, however it ends, and write no files.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import TypeAlias

from enfold.bulk.work import Piece, Unit, Work

Submit: TypeAlias = Callable[[Work, Unit], "Future[Piece]"]

AHEAD = 4
"""Conversations handed out for each process: enough that none waits for the reading."""
WORTH_A_PROCESS = 2 << 20
"""Bytes. A process takes a second to start; for less it is not worth it."""


def cores() -> int:
    """How many processes can work at once on this machine."""
    allowed = getattr(os, "sched_getaffinity", None)  # where there is such a thing
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


def jobs_for(size: int) -> int:
    """How many processes are worth it for so many bytes."""
    return max(1, min(cores(), size // WORTH_A_PROCESS))


@dataclass(frozen=True, slots=True)
class Crew:
    """Who does the work."""

    submit: Submit
    """Hands a unit to whoever is free; the future has its piece, or the error."""
    ahead: int
    """Conversations that are handed out before the first result is taken."""
    memory: int | None = None
    """Bytes of these, where that is known."""


@contextmanager
def local(jobs: int) -> Iterator[Crew]:
    """This process, or several others on this machine."""
    if jobs == 1:
        yield Crew(do_here, AHEAD)
        return
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _sign_on)
    done = False
    try:
        yield Crew(lambda work, unit: pool.submit(_do, work, unit), AHEAD * jobs)
        done = True
    finally:
        if not done:
            _end([each for each in multiprocessing.active_children() if each not in others])
        pool.shutdown(wait=done, cancel_futures=True)


def _end(processes: Sequence[BaseProcess]) -> None:
    """Stop them, and see that they are gone; the pool itself may wait for what they did not say."""
    for process in processes:
        process.terminate()
    for process in processes:
        while process.is_alive():
            process.join(0.1)


def _do(work: Work, unit: Unit) -> Piece:
    return work.do(unit)


def do_here(work: Work, unit: Unit) -> Future[Piece]:
    """What came of it, or what failed, done already."""
    future: Future[Piece] = Future()
    try:
        future.set_result(work.do(unit))
    except Exception as error:  # noqa: BLE001 - it is raised where the result is taken
        future.set_exception(error)
    return future


def _sign_on() -> None:
    """In a process that works for another: die with it, and leave interrupts to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
