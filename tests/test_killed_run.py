"""A test run that is killed leaves neither PostgreSQL nor programs behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from time import sleep

from tests.source import ROOT

_RUN = """
import sys

def test_killed(server):
    pid = (server.folder / "data" / "postmaster.pid").read_text().split()[0]
    print("PID", pid, flush=True)
    sys.stdin.read()
"""


_TWO_SERVERS = """
import sys
from pathlib import Path
from tests.server.processes import serve

new_interpreter = {"PYTHONHASHSEED": "1"}
with serve(Path("1.db"), "--no-ui") as forked, serve(Path("2.db"), **new_interpreter) as new:
    print("PID", forked.started.pid, new.started.pid, flush=True)
    sys.stdin.read()
"""


def test_a_killed_run_leaves_no_database_server_behind(server: object, tmp_path: Path) -> None:
    assert server is not None
    test = tmp_path / "test_it.py"
    test.write_text(_RUN)
    plugins = ("-p", "no:cacheprovider", "-p", "tests.databases")
    _kill("-m", "pytest", "-q", "-s", *plugins, "--rootdir", str(tmp_path), str(test))


def test_a_killed_run_leaves_no_program_behind() -> None:
    _kill("-c", _TWO_SERVERS)


def _kill(*arguments: str) -> None:
    """Kill a process that has printed the numbers of others; wait until they have ended."""
    run = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=os.environ["HOME"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    line = next(each for each in run.stdout if "PID" in each)
    started = [*map(int, line.split("PID")[1].split())]
    assert all(map(_is_running, started))
    run.send_signal(signal.SIGKILL)
    run.communicate()
    while any(map(_is_running, started)):  # the time limit of the test ends an endless wait
        sleep(0.05)


def _is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
