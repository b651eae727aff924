"""`enfold wrap` as a process: the agent's environment, signals and exit code, and the server's end.

The agent here is a small script under the agent's name. tests/agents has the real programs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from enfold.wrap.agents import AGENTS, direct_loopback
from tests.cli.conftest import Enfold
from tests.cli.outcomes import Outcome
from tests.cli.processes import PROGRAM, environment, run_in_pipes
from tests.docs.upstream import upstream
from tests.server.processes import serve

PREAMBLE = """\
import json, os, signal, sys, time, urllib.request
def tell(**more):
    with open(os.environ["REPORT"], "a") as report:
        report.write(json.dumps(more) + "\\n")
        report.flush()
tell(pid=os.getpid(), group=os.getpgrp(), arguments=sys.argv[1:], variables=dict(os.environ))
"""


@dataclass(frozen=True)
class AgentFolder:
    """A folder with an agent's program, and what the agent reports."""

    folder: Path

    def install(self, body: str = "", name: str = "claude") -> None:
        """Write the agent's program."""
        file = self.folder / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!{sys.executable}\n{PREAMBLE}{textwrap.dedent(body)}")
        file.chmod(0o755)

    @property
    def variables(self) -> Mapping[str, str]:
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "REPORT": str(self.folder / "report.jsonl"),
            "HOME": str(self.folder),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "ENFOLD_DB": f"sqlite:///{self.folder / 'chats.db'}",
        }

    @property
    def arguments(self) -> tuple[str, ...]:
        return "wrap", "--no-ui"

    def run(self, *arguments: str, **variables: str) -> Outcome:
        """Run the command to its end."""
        return run_in_pipes(
            *self.arguments, *arguments, stdin=b"", **dict(self.variables, **variables)
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start the command, and wait until the agent runs."""
        started = subprocess.Popen(
            [*PROGRAM, *self.arguments, *arguments],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(**self.variables),
            start_new_session=True,
        )
        while not self.reports():
            assert started.poll() is None, started.communicate()
            time.sleep(0.05)
        return started

    def reports(self) -> list[Any]:
        """Return the lines that the agent reported."""
        file = self.folder / "report.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def log(self) -> str:
        return (self.folder / "state" / "enfold" / "log" / "wrap.log").read_text()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[AgentFolder]:
    found = AgentFolder(tmp_path)
    yield found
    assert not _processes_of(tmp_path), "the server is left behind"


def _processes_of(folder: Path) -> list[str]:
    """The processes that name the folder, as the server does for its database."""
    listed = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if f"{folder}/chats.db" in line]


def _await_end_of_server(folder: Path) -> None:
    while _processes_of(folder):
        time.sleep(0.05)


def test_the_agent_gets_its_arguments_and_the_address_and_returns_its_code(
    place: AgentFolder,
) -> None:
    place.install(
        """
        address = os.environ["ANTHROPIC_BASE_URL"]
        tell(ready=json.load(urllib.request.urlopen(address + "/readyz")))
        sys.exit(7)
        """
    )
    outcome = place.run("claude", "--print", "-p", "--db", "-", "--", "a b", ENFOLD_TOKEN="secret")
    assert outcome.code == 7
    assert outcome.stderr_text.count("\n") == 1, "one line at the end, and nothing else"
    first, second = place.reports()
    assert first["arguments"] == ["--print", "-p", "--db", "-", "--", "a b"]
    assert first["variables"]["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    server = second["ready"]["server"]
    assert server["client_key"] is True
    assert server["token_required"] is False
    assert "stopped" in place.log()


def test_the_line_at_the_end_counts_requests(place: AgentFolder) -> None:
    place.install(
        """
        body = json.dumps({"model": "claude-haiku-4-5", "max_tokens": 5,
                           "messages": [{"role": "user", "content": "hi"}]})
        headers = {"content-type": "application/json", "x-api-key": "k",
                   "anthropic-version": "2023-06-01"}
        url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
        for _ in range(2):
            request = urllib.request.Request(url, body.encode(), headers)
            tell(reply=json.load(urllib.request.urlopen(request)))
        """
    )
    # The server forwards to the address that the user had set before.
    with upstream() as address:
        outcome = place.run("claude", ANTHROPIC_BASE_URL=address)
    assert outcome.code == 0
    assert outcome.stderr_text.startswith("enfold: 2 requests, 0 compressions; details: ")
    assert place.reports()[-1]["reply"]["content"][0]["text"] == "In May."


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGWINCH])
def test_a_signal_to_the_command_reaches_the_agent_once(
    place: AgentFolder, sent: signal.Signals
) -> None:
    place.install(
        f"""
        signal.signal({int(sent)}, lambda number, _: tell(signal=number))
        signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5))
        tell(ready=True)
        while True:
            signal.pause()
        """
    )
    started = place.start("claude")
    _await_report(place, "ready")
    started.send_signal(sent)
    _await_report(place, "signal")
    started.send_signal(signal.SIGUSR1)
    _, stderr = started.communicate(timeout=60)
    assert started.returncode == 5
    assert b"Traceback" not in stderr
    assert [r["signal"] for r in place.reports() if "signal" in r] == [int(sent)]
    assert place.reports()[0]["group"] == started.pid, "the agent is in the foreground group"


def _await_report(place: AgentFolder, name: str) -> None:
    while not any(name in report for report in place.reports()):
        time.sleep(0.05)


def test_an_agent_that_a_signal_ends_gives_a_shells_code(place: AgentFolder) -> None:
    place.install("os.kill(os.getpid(), signal.SIGKILL)")
    assert place.run("claude").code == 128 + signal.SIGKILL


def test_ctrl_c_on_the_terminal_reaches_the_agent_once(place: AgentFolder) -> None:
    place.install(
        """
        signal.signal(signal.SIGINT, lambda number, _: tell(signal=number))
        os.write(sys.stdout.fileno(), b"READY")
        while os.read(0, 100) != b"end\\n":
            pass
        """
    )
    code, shown = _run_on_controlling_terminal(place, "claude")
    assert code == 0, shown
    assert [r["signal"] for r in place.reports() if "signal" in r] == [int(signal.SIGINT)]


def _run_on_controlling_terminal(place: AgentFolder, *arguments: str) -> tuple[int, str]:
    """Run the command as a shell does; press Ctrl+C when the agent is ready, then type "end"."""
    import pty

    pid, terminal = pty.fork()
    if pid == 0:
        command = [*PROGRAM, *place.arguments, *arguments]
        os.execve(command[0], command, dict(environment(**place.variables, TERM="xterm")))
    shown = b""
    while b"READY" not in shown:
        shown += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    _await_report(place, "signal")
    os.write(terminal, b"end\n")
    while chunk := _read(terminal):
        shown += chunk
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1000)
    except OSError:  # Linux reports the end of the other side so
        return b""


def test_the_server_ends_when_the_command_is_killed(place: AgentFolder) -> None:
    place.install("time.sleep(600)")
    started = place.start("claude")
    agent = place.reports()[0]["pid"]
    assert _processes_of(place.folder)
    started.kill()
    started.wait()
    os.kill(agent, signal.SIGKILL)
    started.communicate()
    _await_end_of_server(place.folder)


def test_a_server_that_runs_is_reused_and_stays(place: AgentFolder) -> None:
    place.install()
    variables = {"ENFOLD_PROXY_CLIENT_KEY": "1"}
    with serve(place.folder / "chats.db", "--no-ui", **variables) as process:
        port = process.address.rpartition(":")[2]
        assert place.run("--port", port, "claude").code == 0
        assert place.reports()[0]["variables"]["ANTHROPIC_BASE_URL"] == process.address
        assert httpx.get(f"{process.address}/readyz", timeout=60).status_code == 200
        other = place.run("--port", port, "--db", "sqlite:////tmp/other.db", "claude")
        other.refused(f"port {port} on 127.0.0.1 cannot be used")
        process.stop()


def test_a_server_that_cannot_start_is_one_clear_line(place: AgentFolder) -> None:
    place.install()
    outcome = place.run("--db", "sqlite://nowhere", "claude")
    outcome.refused("the local server did not start", "sqlite:///file.db")
    assert place.reports() == []


def test_an_agent_that_is_not_installed_is_named_with_its_installation(
    enfold: Enfold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for name, agent in AGENTS.items():
        enfold("wrap", name).refused("not installed", agent.install)
    enfold("wrap", "vim").refused("no agent 'vim'", *AGENTS)


def test_an_agent_that_another_service_answers_is_refused(
    enfold: Enfold, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    enfold("wrap", "claude").refused("CLAUDE_CODE_USE_BEDROCK", "unset")


@pytest.mark.parametrize(
    ("agent", "lines"),
    [
        ("claude", ["export ANTHROPIC_BASE_URL=http://127.0.0.1:8790", "claude -p 'a b'"]),
        ("codex", ["codex -c 'openai_base_url=\"http://127.0.0.1:8790/v1\"' -p 'a b'"]),
        ("gemini", ["export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8790", "gemini -p 'a b'"]),
        (
            "aider",
            [
                "export OPENAI_API_BASE=http://127.0.0.1:8790/v1",
                "export ANTHROPIC_API_BASE=http://127.0.0.1:8790",
            ],
        ),
    ],
)
def test_print_shows_shell_lines(
    enfold: Enfold, monkeypatch: pytest.MonkeyPatch, agent: str, lines: list[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    outcome = enfold("wrap", "--print", "--port", "8790", agent, "-p", "a b")
    assert outcome.code == 0
    assert set(lines) <= set(outcome.text.splitlines())
    first, *rest = outcome.text.splitlines()
    assert first.startswith("# ")
    for part in ("ENFOLD_PROXY_CLIENT_KEY=true", "ENFOLD_ON_FAILURE=local", "serve --port 8790"):
        assert part in first
    done = subprocess.run(["/bin/sh", "-n"], input="\n".join(rest), text=True, check=False)
    assert done.returncode == 0


def test_a_config_of_opencode_in_the_environment_is_kept(
    enfold: Enfold, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = {"theme": "dark", "provider": {"openai": {"options": {"timeout": 5}}}}
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", json.dumps(mine))
    launch = AGENTS["opencode"].launch("http://a", dict(os.environ), Path("/x"))
    config = json.loads(launch.variables["OPENCODE_CONFIG_CONTENT"])
    assert config["theme"] == "dark"
    assert config["provider"]["openai"]["options"] == {"timeout": 5, "baseURL": "http://a/v1"}
    assert config["provider"]["google"]["options"] == {"baseURL": "http://a/v1beta"}
    for wrong in ("{", "[]", '{"provider": 1}'):
        monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", wrong)
        enfold("wrap", "--print", "opencode").refused("OPENCODE_CONFIG_CONTENT")


def test_gemini_gets_a_default_way_to_sign_in_only_with_a_key() -> None:
    launch = AGENTS["gemini"].launch
    with_key = launch("http://a", {"GEMINI_API_KEY": "k"}, Path("/x"))
    (file,) = with_key.files
    assert with_key.variables["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"] == str(file)
    assert not launch("http://a", {}, Path("/x")).files
    chosen = {"GEMINI_API_KEY": "k", "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": "/mine"}
    assert launch("http://a", chosen, Path("/x")).variables == {
        "GOOGLE_GEMINI_BASE_URL": "http://a"
    }


def test_requests_to_this_machine_take_no_http_proxy() -> None:
    assert direct_loopback({}) == {}
    found = direct_loopback({"HTTPS_PROXY": "http://p", "NO_PROXY": "intern,localhost"})
    assert found["no_proxy"] == found["NO_PROXY"] == "intern,localhost,127.0.0.1"


def test_addresses_that_the_agent_used_are_the_servers_upstreams() -> None:
    claude = AGENTS["claude"]
    mine = {"ANTHROPIC_BASE_URL": "http://gateway"}
    assert claude.upstream_variables(mine) == {"ENFOLD_ANTHROPIC_BASE_URL": "http://gateway"}
    assert claude.upstream_variables({**mine, "ENFOLD_ANTHROPIC_BASE_URL": "http://b"}) == {}
