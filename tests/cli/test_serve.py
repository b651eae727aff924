"""`enfold serve` as a process: it says where it is, answers, and stops when it is told to."""

from __future__ import annotations

import json
import signal
import socket
from pathlib import Path

import httpx
import pytest

from tests.cli.processes import run_in_pipes
from tests.server.processes import serve


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_the_server_answers_until_it_is_stopped(tmp_path: Path, sent: signal.Signals) -> None:
    with serve(tmp_path / "chats.db", "--no-ui") as process:
        made = httpx.post(f"{process.address}/api/sessions", json={"id": "chat"}, timeout=60)
        assert made.status_code == 201
        assert httpx.get(f"{process.address}/readyz", timeout=60).status_code == 200
        assert process.stop(sent) == 0
    log = "".join(process.stderr_lines)
    assert f"{process.address}/v1" in log
    assert "stopped" in log
    assert "Traceback" not in log


def test_its_log_is_lines_of_json_without_the_token(tmp_path: Path) -> None:
    with serve(tmp_path / "chats.db", "--no-ui", ENFOLD_TOKEN="quite-a-secret") as process:
        path = "/t/quite-a-secret/api/sessions"
        answer = httpx.get(f"{process.address}{path}", headers={"x-request-id": "mine"}, timeout=60)
        assert answer.status_code == 200
        assert httpx.get(f"{process.address}/api/sessions", timeout=60).status_code == 401
        process.stop()
    lines = [json.loads(line) for line in process.stderr_lines if line.startswith("{")]
    (mine,) = [line for line in lines if line.get("request_id") == "mine"]
    assert mine["route"] == "/api/sessions"
    assert (mine["method"], mine["status"], mine["caller"]) == ("GET", 200, "first")
    assert "quite-a-secret" not in "".join(process.stderr_lines)
    assert not [line for line in process.stderr_lines if line.startswith("INFO")]


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        db = f"sqlite:///{tmp_path / 'chats.db'}"
        outcome = run_in_pipes("serve", "--port", port, "--db", db)
    assert outcome.code == 2
    (line,) = outcome.err.decode().splitlines()
    assert f"port {port} on 127.0.0.1 is in use" in line


def test_beyond_this_machine_a_token_is_needed(tmp_path: Path) -> None:
    db = f"sqlite:///{tmp_path / 'chats.db'}"
    outcome = run_in_pipes("serve", "--host", "0.0.0.0", "--port", "0", "--db", db)
    assert outcome.code == 2
    (line,) = outcome.err.decode().splitlines()
    assert "ENFOLD_TOKEN" in line


def test_beyond_this_machine_the_token_opens(tmp_path: Path) -> None:
    with serve(
        tmp_path / "chats.db", "--host", "0.0.0.0", ENFOLD_TOKEN="quite-a-secret"
    ) as process:
        here = process.address.replace("0.0.0.0", "127.0.0.1")
        assert httpx.get(f"{here}/api/sessions", timeout=60).status_code == 401
        bearer = {"authorization": "Bearer quite-a-secret"}
        assert httpx.get(f"{here}/api/sessions", headers=bearer, timeout=60).status_code == 200
        assert process.stop() == 0
