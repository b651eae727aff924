"""The program as a process: its streams, its signals, and what it loads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Enfold
from tests.cli.processes import PROGRAM, environment, run_in_pipes

CHAT = b'[{"role":"user","content":"hello"}]'


def test_count_reads_standard_input() -> None:
    counted = run_in_pipes("count", "--json", stdin=CHAT).json
    assert counted["total"] == 5


def test_output_is_utf_8_in_any_locale(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_bytes('[{"role":"user","content":"港"}]'.encode())
    done = run_in_pipes("condense", file, PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.out == file.read_bytes() + b"\n"


def test_an_error_is_an_exit_code_and_one_line() -> None:
    run_in_pipes("count", stdin=b"{").refused("standard input line 1, column 2")


@pytest.mark.parametrize("arguments", [["models", "--json"], ["models"], ["count", "{file}"]])
def test_a_closed_output_pipe_is_no_error(arguments: list[str], tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_bytes(CHAT)
    started = subprocess.Popen(
        [*PROGRAM, *(word.format(file=file) for word in arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(ENFOLD_DB=f"sqlite:///{tmp_path / 'a.db'}"),
    )
    assert started.stdout is not None
    started.stdout.close()
    assert started.stderr is not None
    stderr = started.stderr.read()
    started.stderr.close()
    assert (started.wait(timeout=100), stderr) == (0, b"")


def test_a_full_disk_is_an_error_of_one_line() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full to write to")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PROGRAM, "count", "--json"],
            input=CHAT,
            stdout=full,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"enfold: standard output cannot be written: No space left on device\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell closes the stream")
def test_a_closed_output_is_an_error_of_one_line() -> None:
    closing = ["sh", "-c", 'exec "$@" >&-', "sh", *PROGRAM, "count"]
    done = subprocess.run(
        closing, input=CHAT, stderr=subprocess.PIPE, env=environment(), check=False
    )
    assert done.returncode == 1
    assert done.stderr == b"enfold: standard output is closed\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a named pipe tells when it is being read")
@pytest.mark.parametrize("command", ["count", "condense", "import"])
def test_an_interrupt_ends_it_at_once_with_nothing_written(command: str, tmp_path: Path) -> None:
    pipe, db = tmp_path / "chat.json", tmp_path / "a.db"
    os.mkfifo(pipe)
    started = subprocess.Popen(
        [*PROGRAM, command, str(pipe)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(ENFOLD_DB=f"sqlite:///{db}"),
    )
    with pipe.open("wb", buffering=0) as writer:  # which waits until it is read
        writer.write(b'{"id":"a","messages":[]}\n')
        _interrupt(started)
        out, stderr = started.communicate(timeout=100)
    assert (started.returncode, out, stderr) == (130, b"", b"enfold: stopped\n")
    assert not db.exists()


def _interrupt(started: subprocess.Popen[bytes]) -> None:
    """Until it ends: a signal between two reads of C code is seen only after the second."""
    for _ in range(10):
        started.send_signal(signal.SIGINT)
        try:
            started.wait(timeout=5)
        except subprocess.TimeoutExpired:
            continue
        return


@pytest.mark.parametrize(
    ("arguments", "may_load"),
    [
        (["--help"], {"rich"}),
        (["count", "--json"], {"splintr"}),
        (["count"], {"splintr"}),
    ],
    ids=lambda value: " ".join(sorted(value)),
)
def test_a_command_loads_only_what_it_needs(arguments: list[str], may_load: set[str]) -> None:
    program = (
        "import sys; from enfold.cli import run; code = run(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        input=CHAT,
        capture_output=True,
        env=environment(),
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stderr.decode().split()}
    heavy = {"aiosqlite", "asyncio", "genai_prices", "psycopg", "rich", "sqlite3", "toktok"}
    assert "cyclopts" in loaded
    assert not (loaded & (heavy | {"splintr", "platformdirs", "langchain_core"})) - may_load


def test_without_a_command_it_says_how_to_start(enfold: Enfold) -> None:
    outcome = enfold()
    assert outcome.code == 0
    for command in ("enfold wrap claude", "enfold serve", "enfold condense", "enfold --help"):
        assert command in outcome.text
