"""Many files at once, with real processes: stopped, killed, and gone on with."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from enfold.jsontext import loads
from tests.bulk.chats import chat, write
from tests.cli.conftest import Enfold
from tests.cli.processes import PROGRAM, environment, run_in_pipes, run_on_terminal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with good files, a broken one, and one that is something else."""
    write(tmp_path / "chats/a.jsonl", chat("a1"), chat("a2"))
    write(tmp_path / "chats/deep/b.json", chat("b")["messages"])
    write(tmp_path / "chats/notes.md", "none")
    return tmp_path / "chats"


def values(path: Path) -> list[Any]:
    """The lines of a file."""
    return [loads(line) for line in path.read_bytes().splitlines()]


def visible(folder: Path) -> set[str]:
    """Return the visible files of a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)) for path in files if not path.name.startswith(".")}


def condense(*arguments: str | Path) -> Sequence[str | Path]:
    """The words of a command that needs no model."""
    return ("condense", *arguments, "--strategy", "truncation")


def test_a_folder_goes_there_and_back(enfold: Enfold, folder: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "small", tmp_path / "again"
    outcome = enfold(*condense(folder, "--out", out))
    assert (outcome.code, outcome.out) == (0, b"")
    assert outcome.stderr_text.startswith("2 files with 3 conversations: ")
    assert outcome.stderr_text.endswith("1 other file ignored\n")
    assert visible(out) == {"a.jsonl", "a.jsonl.ledger", "deep/b.json", "deep/b.json.ledger"}
    outcome = enfold("restore", out, "--out", again)
    assert (outcome.code, outcome.stderr_text) == (0, "2 files with 3 conversations\n")
    assert visible(again) == {"a.jsonl", "deep/b.json"}
    for name in visible(again):
        assert values(again / name) == values(folder / name)


def test_a_file_of_many_conversations_goes_into_a_folder(
    enfold: Enfold, folder: Path, tmp_path: Path
) -> None:
    many = folder / "a.jsonl"
    enfold(*condense(many)).refused("several conversations", "--out FOLDER/")
    assert enfold(*condense(many, "--out", f"{tmp_path}/small/")).code == 0
    assert len(values(tmp_path / "small/a.jsonl")) == 2
    ledgers = tmp_path / "ledgers"
    outcome = enfold(*condense(many, "--out", tmp_path / "small", "--ledger", ledgers))
    assert outcome.code == 0
    assert visible(ledgers) == {"a.jsonl.ledger"}
    outcome = enfold(
        "restore", tmp_path / "small/a.jsonl", "--ledger", ledgers, "--out", f"{tmp_path}/again/"
    )
    assert outcome.code == 0
    assert values(tmp_path / "again/a.jsonl") == values(many)


def test_failures_are_listed_and_the_code_says_so(
    enfold: Enfold, folder: Path, tmp_path: Path
) -> None:
    (folder / "broken.json").write_bytes(b'[{"role": "user"')
    (folder / "nothing.json").write_bytes(b"")
    (folder / "circle.json").symlink_to(folder / "circle.json")
    outcome = enfold(*condense(folder, "--out", tmp_path / "small"))
    assert outcome.code == 1
    lines = outcome.stderr_text.splitlines()
    assert "broken.json line 1" in lines[0]
    assert "circle.json: cannot be read: Too many levels of symbolic links" in lines[1]
    assert "nothing.json: the file is empty" in lines[2]
    assert lines[3].startswith("2 files with 3 conversations")
    assert lines[4:] == ["enfold: 3 of 5 files failed"]
    assert len(visible(tmp_path / "small")) == 4


def test_json_is_a_line_for_every_file(enfold: Enfold, folder: Path, tmp_path: Path) -> None:
    (folder / "broken.json").write_bytes(b"[{")
    outcome = enfold(*condense(folder, "--out", tmp_path / "small", "--json"))
    assert outcome.code == 1
    lines = [loads(line) for line in outcome.out.splitlines()]
    assert [line["status"] for line in lines] == ["done", "failed", "done"]
    assert lines[0]["file"] == str(folder / "a.jsonl")
    assert lines[0]["ledger"] == str(tmp_path / "small/a.jsonl.ledger")
    assert lines[0]["tokens_after"] < lines[0]["tokens_before"]
    assert "line 1, column 3" in lines[1]["error"]
    assert lines[1]["out"] is None
    again = enfold(*condense(folder, "--out", tmp_path / "small", "--json"))
    lines = [loads(line) for line in again.out.splitlines()]
    assert [line["status"] for line in lines] == ["already", "failed", "already"]


def test_an_empty_folder_is_no_failure(enfold: Enfold, tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    outcome = enfold(*condense(tmp_path / "none", "--out", tmp_path / "small"))
    assert (outcome.code, outcome.stderr_text) == (0, "0 files with 0 conversations\n")


REFUSALS: dict[str, tuple[str, list[str]]] = {
    "nowhere": ("{folder}", ["many files need a folder for the results: name it with --out"]),
    "into a file": ("{folder} --out {folder}/a.jsonl", ["a.jsonl is a file"]),
    "ledgers into a file": (
        "{folder} --out {folder}/o --ledger {folder}/a.jsonl",
        ["a.jsonl is a file"],
    ),
    "into itself": ("{folder} --out {folder}", ["is an input; name another folder"]),
    "below a file": ("{folder} --out {folder}/a.jsonl/o", ["cannot be written"]),
    "standard input": ("- {folder} --out {folder}/o", ["standard input is one conversation"]),
    "two of a name": (
        "{folder}/a.jsonl {folder}/deep/a.jsonl --out {folder}/o",
        ["would both be written to"],
    ),
    "no strategy": ("{folder} --out {folder}/o --strategy lossy", ["no strategy 'lossy'"]),
    "no job": ("{folder} --out {folder}/o --jobs 0", ["--jobs"]),
}


@pytest.mark.parametrize(("arguments", "words"), REFUSALS.values(), ids=REFUSALS.keys())
def test_contradicting_arguments_are_refused_at_once(
    arguments: str, words: list[str], enfold: Enfold, folder: Path
) -> None:
    write(folder / "deep/a.jsonl", chat("other"))
    before = visible(folder)
    enfold("condense", *arguments.format(folder=folder).split()).refused(*words)
    assert visible(folder) == before


def test_a_missing_file_fails_by_itself(enfold: Enfold, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "small"
    outcome = enfold(*condense(folder / "a.jsonl", tmp_path / "none.json", "--out", out))
    assert outcome.code == 1
    assert "none.json: cannot be read: No such file" in outcome.stderr_text
    assert visible(out) == {"a.jsonl", "a.jsonl.ledger"}


def test_results_can_lie_inside_the_folder(enfold: Enfold, folder: Path) -> None:
    for _ in range(2):
        assert enfold(*condense(folder, "--out", folder / "small")).code == 0
    assert visible(folder / "small") == {
        "a.jsonl",
        "a.jsonl.ledger",
        "deep/b.json",
        "deep/b.json.ledger",
    }


def _many(tmp_path: Path) -> Path:
    """A folder that takes some seconds: one long file and a few short ones."""
    folder = tmp_path / "many"
    write(folder / "long.jsonl", *(chat(f"long{n}", 60) for n in range(40)))
    for name in range(2):
        write(folder / f"short{name}.jsonl", chat(f"short{name}", 60))
    return folder


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=str)
def test_a_run_that_is_stopped_goes_on(
    stop: signal.Signals, enfold: Enfold, tmp_path: Path
) -> None:
    folder, out = _many(tmp_path), tmp_path / "small"
    arguments = condense(folder, "--out", out, "--jobs", "2")
    started = subprocess.Popen(
        [*PROGRAM, *map(str, arguments)],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    part = out / ".enfold-part-long.jsonl"
    deadline = time.monotonic() + 60
    while not (part.exists() and part.stat().st_size > 150_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    started.send_signal(stop)
    _, stderr = started.communicate(timeout=200)
    assert started.returncode == (130 if stop == signal.SIGINT else -stop)
    assert b"Traceback" not in stderr
    assert visible(out) == set()
    _assert_no_process_is_left(started.pid)
    begun = part.stat().st_size
    done = enfold(*condense(folder, "--out", out, "--jobs", "1"))
    assert done.code == 0, done.stderr_text
    assert begun > 150_000
    assert done.stderr_text.startswith("3 files with 42 conversations: ")
    assert not list(out.rglob(".enfold-part*"))
    assert enfold(*condense(folder, "--out", tmp_path / "whole", "--jobs", "1")).code == 0
    for name in visible(tmp_path / "whole"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def _assert_no_process_is_left(session: int) -> None:
    """Every process of the run is gone, soon."""
    deadline = time.monotonic() + 30
    while True:
        try:
            os.killpg(session, 0)
        except ProcessLookupError:
            return
        assert time.monotonic() < deadline, "a process of the run is still there"
        time.sleep(0.05)


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path) -> None:
    folder, out = _many(tmp_path), tmp_path / "small"
    arguments = condense(folder, "--out", out, "--jobs", "1")
    with subprocess.Popen(
        [*PROGRAM, *map(str, arguments)], env=environment(), stderr=subprocess.DEVNULL
    ) as started:
        while not (out / ".enfold-part-long.jsonl").exists():
            time.sleep(0.01)
        started.send_signal(signal.SIGSTOP)  # it must not end before the other run begins
        run_in_pipes(*arguments).refused("another run writes into this folder")
        started.kill()


def test_a_terminal_shows_how_far_it_is(folder: Path, tmp_path: Path) -> None:
    code, shown = run_on_terminal(*condense(folder, "--out", tmp_path / "small"))
    assert code == 0
    assert "Condensing" in shown
    assert "2 files with 3 conversations" in shown


@pytest.mark.skipif(find_spec("daft") is None, reason="Daft is not installed")
def test_daft_does_the_same_from_the_command_line(folder: Path, tmp_path: Path) -> None:
    for engine in ("local", "daft"):
        outcome = run_in_pipes(*condense(folder, "--out", tmp_path / engine), "--engine", engine)
        assert outcome.code == 0, outcome.stderr_text
        assert outcome.stderr_text.startswith("2 files with 3 conversations: ")
    for name in visible(tmp_path / "local"):
        assert (tmp_path / "daft" / name).read_bytes() == (tmp_path / "local" / name).read_bytes()


def test_another_engine_is_for_many_files(enfold: Enfold, folder: Path) -> None:
    outcome = enfold(*condense(folder / "deep/b.json", "--engine", "daft"))
    assert outcome.code == 2
    assert "--engine daft is for many files" in outcome.stderr_text
