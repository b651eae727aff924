"""The container files: their statements hold, and their servers share the work."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from typing import Any

import pytest

import enfold
from tests.cli.processes import environment
from tests.databases import Server
from tests.server.cluster import TOKEN, joined
from tests.server.live_server import serving
from tests.server.processes import serve
from tests.server.proxy.stage import ScriptedProvider, question
from tests.source import ROOT

yaml = pytest.importorskip("yaml")

OURS = ("api", "ui")
LISTENING = ["--host", "0.0.0.0", "--port", "8787"]


@pytest.fixture(scope="module")
def compose() -> Any:
    return yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))


@pytest.fixture(scope="module")
def containerfile() -> str:
    return (ROOT / "Containerfile").read_text("utf-8")


def test_three_servers_have_no_ui_and_one_has_it(compose: Any) -> None:
    services = compose["services"]
    assert services["api"]["deploy"]["replicas"] == 3
    assert "--no-ui" in services["api"]["command"]
    assert "--no-ui" not in services["ui"]["command"]


def test_no_secret_is_written_down(compose: Any) -> None:
    for name, service in compose["services"].items():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|TOKEN|SECRET|DB$", key) and key != "POSTGRES_DB":
                assert "${" in value, (name, key)
                assert ":?" in value, f"{name}: {key} could be left empty"


def test_no_service_runs_as_root_and_each_has_a_health_check(
    compose: Any, containerfile: str
) -> None:
    (user,) = re.findall(r"^USER (\d+)$", containerfile, re.MULTILINE)
    assert int(user) > 0
    for name in OURS:
        service = compose["services"][name]
        assert service["user"] == user
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["healthcheck"]["test"][1:] == _healthcheck(containerfile)
        assert service["depends_on"]["database"]["condition"] == "service_healthy"
    assert "/readyz" in _healthcheck(containerfile)[-1]


def _healthcheck(containerfile: str) -> list[str]:
    (found,) = re.findall(r"^HEALTHCHECK .*\\\n +CMD (\[.*\])$", containerfile, re.MULTILINE)
    command: list[str] = yaml.safe_load(found)
    return command


def test_the_image_is_made_of_what_is_there(containerfile: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (extras,) = re.findall(r'"\.\[([\w,-]+)\]"', containerfile)
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    for sources in re.findall(r"^COPY (?!--from)(.*) \S+$", containerfile, re.MULTILINE):
        for source in sources.split():
            assert (ROOT / source).exists()
    kept = set((ROOT / ".containerignore").read_text("utf-8").splitlines())
    assert kept == set((ROOT / ".dockerignore").read_text("utf-8").splitlines())


def test_the_balancer_sends_everything_that_has_no_pages_to_the_three(compose: Any) -> None:
    (mounted,) = compose["services"]["balancer"]["volumes"]
    config = (ROOT / mounted.split(":")[0]).read_text("utf-8")
    assert set(re.findall(r"server (\w+):8787", config)) == set(OURS)
    (pattern,) = re.findall(r"location ~ (\S+) \{\s+proxy_pass http://api;", config)
    for path in ("/api/sessions", "/v1/chat/completions", "/v1beta/models/m:generateContent"):
        assert re.search(pattern, path)
    for path in ("/t/token/v1/messages", "/docs", "/openapi.json", "/healthz", "/readyz"):
        assert re.search(pattern, path)
    for path in ("/", "/sessions", "/apiary", "/signin"):
        assert not re.search(pattern, path)


async def test_its_servers_answer_as_one(compose: Any, containerfile: str, server: Server) -> None:
    """The commands of the file, as processes: only where they listen is our own choice."""
    api = compose["services"]["api"]
    command = " ".join(api["command"])
    assert command.startswith(" ".join(["serve", *LISTENING]))
    more = api["command"][1 + len(LISTENING) :]
    assert set(api["environment"]) == {"ENFOLD_DB", "ENFOLD_TOKEN", "ENFOLD_SECRET_KEY"}
    provider = ScriptedProvider()
    url = server.new_database()
    async with serving(provider.app()) as upstream:
        variables = {
            "ENFOLD_TOKEN": TOKEN,
            "ENFOLD_SECRET_KEY": "a secret of the test",
            "ENFOLD_OPENAI_BASE_URL": upstream,
        }
        with (
            serve(url, *more, **variables) as one,
            serve(url, *more, **variables) as two,
            serve(url, *more, **variables) as three,
        ):
            servers = [one, two, three]
            for process in servers:
                assert _is_healthy(_healthcheck(containerfile), process.address)
            async with joined(servers, provider) as on:
                messages: list[Any] = []
                for number in range(30):
                    messages.append({"role": "user", "content": question(number)})
                    answer = await on.say(messages, at=number)
                    assert answer.status == 200, answer.body
                    messages.append(answer.body["choices"][0]["message"])
                assert answer.decision == "reused"
            assert [process.stop() for process in servers] == [0, 0, 0]
    async with enfold.open(url) as engine:
        (record,) = await engine.sessions()
        (branch,) = await (await engine.find(record.id)).branches()
        assert branch.depth == len(messages) - 1  # the last answer comes with the next question


def _is_healthy(command: list[str], address: str) -> bool:
    """Return True if the container's health check succeeds at our port."""
    program = [part.replace("http://127.0.0.1:8787", address) for part in command[1:]]
    done = subprocess.run([sys.executable, *program], env=environment(), check=False, timeout=60)
    return done.returncode == 0
