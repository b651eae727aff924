"""A test run that is killed leaves no PostgreSQL behind."""

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


def test_a_killed_run_leaves_no_server_behind(server: object, tmp_path: Path) -> None:
    assert server is not None
    test = tmp_path / "test_it.py"
    test.write_text(_RUN)
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(test)]
    run = subprocess.Popen(
        [*command, "-p", "tests.databases", "--rootdir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    line = next(each for each in run.stdout if "PID" in each)
    pid = int(line.split("PID")[1])
    assert _is_running(pid)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    while _is_running(pid):  # the run's own time limit ends a wait that never would
        sleep(0.05)


def _is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
