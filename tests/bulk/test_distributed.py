"""Daft gives what the local crew gives: results, errors, and a run that can be gone on with."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from enfold.bulk import workers
from enfold.bulk.files import condense_paths, find_files
from enfold.bulk.run import BulkRun, FileResult
from enfold.bulk.tasks import BulkItem, CondenseTask, ItemResult
from enfold.engine.stateless import CondenseOptions
from enfold.errors import ConfigError, InputError, SummaryError, UnfinishedError
from enfold.settings import Settings
from enfold.transcripts.source import Record
from tests.bulk.chats import TRUNCATION, chat, write

pytestmark = [
    # It is not imported here: it must be told first that it reports to nobody.
    pytest.mark.skipif(find_spec("daft") is None, reason="Daft is not installed"),
    # Its pipes to its processes are closed when they are collected, which is none of our business.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(autouse=True)
def nothing_left_for_others() -> Iterator[None]:
    yield
    gc.collect()


@dataclass(frozen=True, slots=True)
class Marked(CondenseTask):
    """Repeats what it is given, and fails where it is told to."""

    def do(self, unit: BulkItem) -> ItemResult:
        assert isinstance(unit.given, Record)
        if unit.given.text == b"bad":
            raise InputError("broken", place="here")
        return ItemResult(unit.given.text * 2)


@dataclass(frozen=True, slots=True)
class Dying(CondenseTask):
    """Takes its process with it."""

    def do(self, unit: BulkItem) -> ItemResult:
        os._exit(len(unit.place) or 3)


WORK = Marked(Settings(), CondenseOptions())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A few hundred small conversations, in files of two forms, and a broken one."""
    for name in range(4):
        write(tmp_path / f"in/{name}.jsonl", *(chat(f"{name}-{n}", 3) for n in range(75)))
    write(tmp_path / "in/deep/one.json", chat("one")["messages"])
    (tmp_path / "in/broken.jsonl").write_bytes(b'{"messages": [{"role": "user"')
    return tmp_path / "in"


def run(folder: Path, out: str, engine: str) -> list[FileResult]:
    target = folder.parent / out
    places = condense_paths(find_files([folder]), target, None)
    return list(BulkRun(TRUNCATION, places, target, 2, engine).outcomes())


def written(folder: Path, out: str) -> dict[str, bytes]:
    files = (path for path in (folder.parent / out).rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder.parent / out)): path.read_bytes()
        for path in files
        if not path.name.startswith(".")
    }


def test_results_and_reports_are_the_same_as_of_the_local_crew(folder: Path) -> None:
    local, daft = run(folder, "local", "local"), run(folder, "daft", "daft")
    assert written(folder, "daft") == written(folder, "local")
    assert len(written(folder, "daft")) == 10
    for here, there in zip(local, daft, strict=True):
        assert here.status == there.status
        assert str(here.error) == str(there.error)
        assert here.tally.conversations == there.tally.conversations
        assert here.tally.tokens_after == there.tally.tokens_after
        assert here.tally.warnings == there.tally.warnings
    again = run(folder, "daft", "daft")
    assert {outcome.status for outcome in again if outcome.error is None} == {"already"}


def test_rows_keep_their_order_and_an_error_is_one_rows_own() -> None:
    texts = [b"%d" % number for number in range(100)]
    with workers.daft_workers(2) as started:
        futures = [started.submit(WORK, BulkItem(Record(text))) for text in texts]
        bad = started.submit(WORK, BulkItem(Record(b"bad")))
        assert [future.result(60).result for future in futures] == [text * 2 for text in texts]
        with pytest.raises(InputError, match="broken"):
            bad.result(60)


def test_a_process_that_dies_ends_the_run(tmp_path: Path) -> None:
    write(tmp_path / "in/a.jsonl", chat("a", 1))
    out = tmp_path / "out"
    places = condense_paths(find_files([tmp_path / "in"]), out, None)
    with pytest.raises(UnfinishedError, match="run it again"):
        list(BulkRun(Dying(Settings(), CondenseOptions()), places, out, 1, "daft").outcomes())


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"enfold\[bulk\]"), workers.daft_workers(1):
        raise SummaryError("it began")
