"""Workers return results and errors, in this process or another."""

from __future__ import annotations

import multiprocessing
import os
from dataclasses import dataclass

import pytest

from enfold.bulk.tasks import BulkItem, CondenseTask, ItemResult
from enfold.bulk.workers import WORTH_A_PROCESS, cores, jobs_for, local_workers
from enfold.engine.stateless import CondenseOptions
from enfold.errors import InputError
from enfold.settings import Settings
from enfold.transcripts.source import Record


@dataclass(frozen=True, slots=True)
class Telling(CondenseTask):
    """Says who did it, or fails."""

    def do(self, unit: BulkItem) -> ItemResult:
        if unit.place == "bad":
            raise InputError("broken", place="here")
        return ItemResult(b"%d" % os.getpid())


WORK = Telling(Settings(), CondenseOptions())
GOOD, BAD = BulkItem(Record(b"")), BulkItem(Record(b""), "bad")


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


def test_an_interrupted_run_leaves_no_process_behind() -> None:
    before = multiprocessing.active_children()

    def give_up() -> None:
        with local_workers(2) as workers:
            workers.submit(WORK, GOOD).result()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        give_up()
    assert multiprocessing.active_children() == before


def test_little_is_done_here_and_much_by_all() -> None:
    assert jobs_for(0) == 1
    assert jobs_for(WORTH_A_PROCESS) == 1
    assert jobs_for(WORTH_A_PROCESS * 1_000) == cores()
