"""Workers return results and errors, in this process or another."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import Connection

import pytest

from enfold.bulk.tasks import BulkItem, CondenseTask, ItemResult
from enfold.bulk.workers import WORTH_A_PROCESS, cores, jobs_for, local_workers
from enfold.engine.stateless import CondenseOptions
from enfold.errors import InputError
from enfold.settings import Settings
from enfold.transcripts.source import Record


def _send_half(connection: Connection, data: bytes) -> None:
    os.write(connection.fileno(), bytes(data)[: len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Telling(CondenseTask):
    """Says who did it, or fails."""

    def do(self, unit: BulkItem) -> ItemResult:
        if unit.place == "bad":
            raise InputError("broken", place="here")
        if unit.place == "killed":
            setattr(Connection, "_send", _send_half)  # noqa: B010 - it is private
        if unit.place == "large":
            return ItemResult(bytes(20_000_000))
        return ItemResult(b"%d" % os.getpid())


WORK = Telling(Settings(), CondenseOptions())
GOOD, BAD = BulkItem(Record(b"")), BulkItem(Record(b""), "bad")
LARGE, KILLED = BulkItem(Record(b""), "large"), BulkItem(Record(b""), "killed")


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_and_errors_come_back(jobs: int) -> None:
    before = multiprocessing.active_children()
    with local_workers(jobs) as workers:
        done, failed = workers.submit(WORK, GOOD), workers.submit(WORK, BAD)
        assert (int(done.result().result) == os.getpid()) == (jobs == 1)
        with pytest.raises(InputError) as caught:
            failed.result()
        assert str(caught.value) == "here: broken"
    assert multiprocessing.active_children() == before


def test_a_run_that_is_interrupted_while_results_arrive_leaves_nothing_behind() -> None:
    """The results do not fit into a pipe, so the workers are killed while they send them."""
    processes, threads = multiprocessing.active_children(), threading.enumerate()

    def give_up() -> None:
        with local_workers(2) as workers:
            results = [workers.submit(WORK, LARGE) for _ in range(8)]
            results[0].result()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        give_up()
    assert multiprocessing.active_children() == processes
    assert threading.enumerate() == threads


def test_a_worker_that_is_killed_while_it_sends_a_result_is_an_error() -> None:
    with local_workers(2) as workers, pytest.raises(BrokenProcessPool):
        workers.submit(WORK, KILLED).result()


def test_little_is_done_here_and_much_by_all() -> None:
    assert jobs_for(0) == 1
    assert jobs_for(WORTH_A_PROCESS) == 1
    assert jobs_for(WORTH_A_PROCESS * 1_000) == cores()
