"""Many files: each whole or failed by itself, and none done twice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from enfold.bulk.files import condense_paths, find_files, restore_paths
from enfold.bulk.run import BulkRun, FileResult
from enfold.bulk.tasks import BulkItem, CondenseTask, ItemResult, RestoreTask
from enfold.engine.stateless import CondenseOptions
from enfold.errors import SummaryError
from enfold.jsontext import loads
from tests.bulk.chats import TRUNCATION, chat, write

CHATS: dict[str, list[Any]] = {
    "a.jsonl": [chat("a1"), chat("a2"), chat("a3")],
    "deep/b.json": [chat("b")["messages"]],
    "deep/er/c.json": [[chat("c1"), chat("c2")]],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of every form."""
    for name, values in CHATS.items():
        write(tmp_path / "in" / name, *values)
    return tmp_path / "in"


def condense(folder: Path, work: CondenseTask = TRUNCATION, jobs: int = 1) -> list[FileResult]:
    """Condense all of a folder into the one beside it."""
    out = folder.parent / "out"
    return list(
        BulkRun(work, condense_paths(find_files([folder]), out, None), out, jobs).outcomes()
    )


def restored(folder: Path) -> dict[str, list[Any]]:
    """Return the conversations restored from the results of a folder."""
    out, again = folder.parent / "out", folder.parent / "again"
    found = find_files([out])
    outcomes = list(BulkRun(RestoreTask(), restore_paths(found, again, None), again).outcomes())
    assert [outcome.error for outcome in outcomes] == [None] * len(outcomes)
    return {
        str(below): [loads(line) for line in (again / below).read_bytes().splitlines()]
        for _, below in found.files
    }


def written(folder: Path) -> dict[str, bytes]:
    """Every file of results."""
    files = (path for path in (folder.parent / "out").rglob("*") if path.is_file())
    return {path.name: path.read_bytes() for path in files if not path.name.startswith(".")}


@pytest.mark.parametrize("jobs", [1, 2])
def test_all_become_smaller_and_come_back(folder: Path, jobs: int) -> None:
    outcomes = condense(folder, jobs=jobs)
    assert [outcome.status for outcome in outcomes] == ["done"] * 3
    assert [outcome.tally.conversations for outcome in outcomes] == [3, 1, 2]
    assert all(outcome.tally.reduction > 0.3 for outcome in outcomes)
    assert restored(folder) == CHATS


def test_nothing_is_done_twice(folder: Path) -> None:
    first = condense(folder)
    before = written(folder)
    again = condense(folder)
    assert [outcome.status for outcome in again] == ["already"] * 3
    assert [o.tally.tokens_after for o in again] == [o.tally.tokens_after for o in first]
    assert written(folder) == before


def test_changed_files_are_done_again(folder: Path) -> None:
    condense(folder)
    write(folder / "a.jsonl", chat("other"))
    (folder.parent / "out/deep/er/c.json.ledger").unlink()
    assert [outcome.status for outcome in condense(folder)] == ["done", "already", "done"]
    goal = replace(TRUNCATION, options=CondenseOptions(keep_tokens=10))
    assert [outcome.status for outcome in condense(folder, goal)] == ["done"] * 3


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_fails_does_not_stop_the_others(folder: Path, jobs: int) -> None:
    (folder / "a.jsonl").write_bytes((folder / "a.jsonl").read_bytes() + b'{"messages": [7]}\n')
    write(folder / "deep/empty.json").write_bytes(b"")
    write(folder / "deep/picture.json").write_bytes(b"\x89PNG\0\0")
    outcomes = condense(folder, jobs=jobs)
    errors = {outcome.place.source.name: str(outcome.error or "") for outcome in outcomes}
    assert "a.jsonl line 4" in errors["a.jsonl"]
    assert "the file is empty" in errors["empty.json"]
    assert "a binary file" in errors["picture.json"]
    assert [outcome.status for outcome in outcomes].count("done") == 2
    assert set(written(folder)) == {"b.json", "b.json.ledger", "c.json", "c.json.ledger"}
    assert not list((folder.parent / "out").rglob(".enfold-part*"))


@dataclass(frozen=True, slots=True)
class FailingTask(CondenseTask):
    """Cannot do one of the conversations, this time."""

    bad: str = "a3"
    error: type[Exception] = SummaryError

    def do(self, unit: BulkItem) -> ItemResult:
        done = TRUNCATION.do(unit)
        if loads(done.result).get("id") == self.bad:
            raise self.error("not now")
        return done


def test_a_retryable_failure_continues_at_its_line(folder: Path) -> None:
    work = FailingTask(TRUNCATION.settings, TRUNCATION.options)
    (folder / "deep" / "b.json").unlink()
    first = condense(folder, work)
    assert [outcome.status for outcome in first] == ["failed", "done"]
    attempted: list[str] = []

    @dataclass(frozen=True, slots=True)
    class QuestionStored(FailingTask):
        @property
        def key(self) -> str:
            return work.key

        def do(self, unit: BulkItem) -> ItemResult:
            attempted.append(unit.place)
            return TRUNCATION.do(unit)

    again = condense(folder, QuestionStored(TRUNCATION.settings, TRUNCATION.options))
    assert [outcome.status for outcome in again] == ["done", "already"]
    assert attempted == ["line 3"]
    assert again[0].tally.conversations == 3
    assert restored(folder)["a.jsonl"] == CHATS["a.jsonl"]


def test_a_fault_of_ours_costs_one_file(folder: Path) -> None:
    (folder / "deep" / "b.json").unlink()
    work = FailingTask(TRUNCATION.settings, TRUNCATION.options, error=KeyError)
    outcomes = condense(folder, work)
    assert [outcome.status for outcome in outcomes] == ["failed", "done"]
    assert "an internal error, KeyError" in str(outcomes[0].error)
    assert "not now" not in str(outcomes[0].error)


def test_progress_adds_up_to_all_bytes(folder: Path) -> None:
    (folder / "bad.json").write_bytes(b"[{")
    steps: list[int] = []
    out = folder.parent / "out"
    places = condense_paths(find_files([folder]), out, None)
    list(BulkRun(TRUNCATION, places, out, on_progress=steps.append).outcomes())
    assert sum(steps) == sum(place.source.stat().st_size for place in places)


def test_a_run_that_is_given_up_goes_on_where_it_was(folder: Path) -> None:
    out = folder.parent / "out"
    run = BulkRun(TRUNCATION, condense_paths(find_files([folder]), out, None), out)
    running = run.outcomes()
    next(running)
    running.close()
    assert condense(folder)[0].status == "already"
    assert restored(folder) == CHATS


def test_a_file_without_a_ledger_is_named(folder: Path) -> None:
    again = folder.parent / "again"
    outcomes = list(
        BulkRun(RestoreTask(), restore_paths(find_files([folder]), again, None), again).outcomes()
    )
    assert all("cannot be read: No such file" in str(outcome.error) for outcome in outcomes)
    assert "a.jsonl.ledger" in str(outcomes[0].error)


def test_a_file_with_too_few_ledgers_is_refused(folder: Path) -> None:
    condense(folder)
    ledger = folder.parent / "out" / "a.jsonl.ledger"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:2]))
    again = folder.parent / "again"
    found = restore_paths(find_files([folder.parent / "out"]), again, None)
    outcomes = list(BulkRun(RestoreTask(), found, again).outcomes())
    assert "fewer ledgers than conversations" in str(outcomes[0].error)
    assert [outcome.status for outcome in outcomes] == ["failed", "done", "done"]
