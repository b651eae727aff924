"""The plugins in the real agents: after a compaction an agent is told what it may recall."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from enfold.engine.agent_notes import MAX_BYTES
from enfold.messages import Message
from enfold.testing import assistant, call
from enfold.testing.provider import ProviderRequest, StrictProvider
from tests.agents.test_agents import INSTALLED, QUIET, ROOT

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

PROMPT = "Remember that the ferry to Skagen leaves from quay 17."
SESSION = "0d9a4b52-7a6f-4a53-9d0e-5f3a5c0f7e11"
CLAUDE = INSTALLED / "node_modules" / ".bin" / "claude"
CODEX = INSTALLED / "node_modules" / ".bin" / "codex"
NOTE = "enfold has the whole history of this session"


def _claude(provider: StrictProvider, home: Path, *arguments: str) -> str:
    """Run Claude Code with the plugin, without the proxy."""
    variables = {
        "IS_SANDBOX": "1",
        # It waits for MCP servers, so that their tools are in the first request.
        "MCP_CONNECTION_NONBLOCKING": "0",
        "ANTHROPIC_API_KEY": "sk-ant-test",
        "ANTHROPIC_BASE_URL": provider.address,
    }
    plugin = ROOT / "plugins" / "claude-code"
    command = [str(CLAUDE), "--plugin-dir", str(plugin), "--dangerously-skip-permissions"]
    return _run(home, [*command, *arguments], variables)


def _run(home: Path, command: list[str], variables: Mapping[str, str]) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    database = f"sqlite:///{home / 'enfold.db'}"
    done = subprocess.run(
        command,
        cwd=home,
        env={**QUIET, "PATH": path, "HOME": str(home), "ENFOLD_DB": database, **variables},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(not CLAUDE.exists(), reason="Claude Code is not installed: make test-agents")
def test_claude_code_learns_its_recall_options_after_its_compaction(tmp_path: Path) -> None:
    def script(_request: ProviderRequest) -> Message:
        return assistant("Noted: the ferry to Skagen leaves from quay 17.")

    with StrictProvider(script) as provider:
        _claude(provider, tmp_path, "-p", PROMPT, "--session-id", SESSION)
        first = len(provider.requests)
        assert NOTE not in json.dumps([each.body for each in provider.requests])
        _claude(provider, tmp_path, "-p", "/compact", "--resume", SESSION)
        _claude(provider, tmp_path, "-p", "Where does the ferry leave?", "--resume", SESSION)
        later = [each for each in provider.requests[first:] if "tools" in each.body]
    sent = json.dumps(later[-1].body, ensure_ascii=False)
    assert NOTE in sent
    assert PROMPT in sent
    assert "enfold__recall" in sent
    assert provider.refused == []


@pytest.mark.skipif(not CODEX.exists(), reason="Codex is not installed: make test-agents")
def test_codex_learns_its_recall_options_after_its_compaction(tmp_path: Path) -> None:
    calls = [call("c1", "exec_command", {"cmd": "seq 1 4000"})]

    def script(_request: ProviderRequest) -> Message:
        return assistant("", calls.pop()) if calls else assistant("It leaves from quay 17.")

    for arguments in (("marketplace", "add", str(ROOT)), ("add", "enfold@enfold")):
        _run(tmp_path, [str(CODEX), "plugin", *arguments], {})
    flags = ("skip-git-repo-check", "dangerously-bypass-approvals-and-sandbox")
    with StrictProvider(script) as provider:
        settings = {
            "openai_base_url": f'"{provider.address}/v1"',
            "model_auto_compact_token_limit": "12000",
        }
        command = [
            *(str(CODEX), "exec", *(f"--{flag}" for flag in flags)),
            "--dangerously-bypass-hook-trust",  # a person is asked once whether the hooks may run
            *(word for name, value in settings.items() for word in ("-c", f"{name}={value}")),
            *("-m", "gpt-5-codex", PROMPT),
        ]
        _run(tmp_path, command, {"CODEX_API_KEY": "sk-test"})
    assert provider.refused == []
    before, trigger, after = provider.requests
    assert NOTE not in before.raw.decode()
    assert trigger.messages[-1]["type"] == "compaction_trigger"
    message = next(each for each in after.messages if NOTE in json.dumps(each))
    assert message["role"] == "developer"
    assert len(message["content"][0]["text"].encode()) <= MAX_BYTES
    assert PROMPT in json.dumps(message)
