"""Real coding agents through `enfold wrap`, against a provider that refuses every wrong request."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from enfold.messages import Message
from enfold.testing import assistant
from enfold.testing.provider import Overflow, ProviderRequest, StrictProvider
from enfold.wiring import open_engine
from tests.agents.loops import (
    PROMPT,
    RULES,
    SUMMARY,
    LoopScript,
    Tools,
    examine,
    make_project,
    strings,
)

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1_200)]

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = ROOT / ".cache" / "agents"
PATH = os.environ["PATH"]
STEPS = int(os.environ.get("AGENT_STEPS", "50"))
QUIET = {
    # No agent may look for updates or send statistics.
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_BUG_COMMAND": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DO_NOT_TRACK": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "GEMINI_TELEMETRY_ENABLED": "false",
    "NO_COLOR": "1",
}


@dataclass(frozen=True)
class Case:
    """An agent, its model and the window that enfold keeps to."""

    name: str
    arguments: tuple[str, ...]
    model: str
    """As provider:model."""
    window: int
    tools: Tools
    variables: Mapping[str, str]
    configs: Mapping[str, str]
    """Config files of the agent in the home folder, which must stay as they are."""


def _claude_tools() -> Tools:
    return Tools(
        lambda path: ("Read", {"file_path": str(path)}),
        lambda command: ("Bash", {"command": command, "description": "Run a command"}),
    )


def _codex_tools() -> Tools:
    def shell(command: str) -> tuple[str, Mapping[str, Any]]:
        return "exec_command", {"cmd": command}

    return Tools(lambda path: shell(f"cat {path}"), shell)


CASES = [
    Case(
        "claude",
        ("-p", PROMPT, "--dangerously-skip-permissions", "--model", "claude-opus-4-8"),
        "anthropic:claude-opus-4-8",
        64_000 + 50_000,  # it asks for replies of up to 64,000 tokens
        _claude_tools(),
        {"ANTHROPIC_API_KEY": "sk-ant-test", "IS_SANDBOX": "1"},
        {".claude/settings.json": '{"env": {"MY_OWN": "1"}}\n'},
    ),
    Case(
        "codex",
        (
            *("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            *("-m", "gpt-5-codex", PROMPT),
        ),
        "openai:gpt-5-codex",
        40_000,
        _codex_tools(),
        {"CODEX_API_KEY": "sk-test"},
        {".codex/config.toml": "# mine\nhide_agent_reasoning = true\n"},
    ),
    Case(
        "gemini",
        ("--yolo", "--skip-trust", "-m", "gemini-2.5-pro", "-p", PROMPT),
        "google:gemini-2.5-pro",
        44_000,
        Tools(
            lambda path: ("read_file", {"file_path": str(path)}),
            lambda command: ("run_shell_command", {"command": command}),
        ),
        {"GEMINI_API_KEY": "test"},
        {
            ".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}},'
            ' "privacy": {"usageStatisticsEnabled": false},'
            ' "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false},'
            # Its loop check sends histories that begin in the middle.
            ' "model": {"disableLoopDetection": true}}\n'
        },
    ),
    Case(
        "opencode",
        ("run", "-m", "openai/gpt-4o", PROMPT),
        "openai:gpt-4o",
        36_000,
        Tools(
            lambda path: ("read", {"filePath": str(path)}),
            lambda command: ("bash", {"command": command, "description": "Run a command"}),
        ),
        {"OPENAI_API_KEY": "sk-test"},
        {
            ".config/opencode/opencode.json": '{"$schema": "https://opencode.ai/config.json",'
            ' "share": "disabled", "autoupdate": false,'
            ' "permission": {"bash": "allow", "edit": "allow"}}\n'
        },
    ),
]


AIDER = Case(
    "aider",
    (
        *("--model", "openai/gpt-4o", "--chat-mode", "ask", "--read", "AGENTS.md"),
        *("--yes-always", "--no-git", "--no-pretty", "--no-fancy-input", "--no-stream"),
        *("--no-check-update", "--analytics-disable", "--no-show-release-notes"),
        *("--no-show-model-warnings", "--no-detect-urls", "--map-tokens", "0"),
        # It would summarize its history by itself.
        *("--max-chat-history-tokens", "1000000"),
    ),
    "openai:gpt-4o",
    30_000,
    _codex_tools(),
    {"OPENAI_API_KEY": "sk-test", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    {".aider.conf.yml": "# mine\ndark-mode: true\n"},
)


def _skip_without(name: str, path: str) -> None:
    missing = INSTALLED / f"missing-{name}.txt"
    if missing.exists():
        pytest.skip(missing.read_text("utf-8"))
    if not (INSTALLED / path).exists():
        pytest.skip("the agents are not installed; `make test-agents` installs them")


@dataclass
class ChatScript:
    """A model that answers the questions of a person with long texts."""

    overflow_at: int = 7
    main: list[ProviderRequest] = field(default_factory=list)

    def __call__(self, request: ProviderRequest) -> Message:
        """Return the next answer, or a summary where one is wanted."""
        spoken = [each for each in request.messages if each["role"] == "user"]
        if not str(spoken[-1]["content"]).startswith("Question "):
            return assistant(SUMMARY)
        if len(self.main) + 1 == self.overflow_at:
            self.overflow_at = 0
            raise Overflow
        self.main.append(request)
        number = len(self.main)
        times = (f"Ferry {number} takes quay {number * 100 + place}." for place in range(200))
        return assistant(f"Answer {number}. {' '.join(times)}")


async def test_a_long_chat_with_aider_stays_valid_and_keeps_rules_and_prompts(
    tmp_path: Path,
) -> None:
    _skip_without("aider", "aider/bin/aider")
    home, project = tmp_path / "home", tmp_path / "project"
    make_project(project, 1)
    _write_configs(AIDER, home)
    store = f"sqlite:///{tmp_path / 'enfold.db'}"
    async with open_engine(store) as engine:
        await engine.models.edit(AIDER.model, max_input=AIDER.window)
    questions = [f"Question {number}: which quays does it take?" for number in range(1, STEPS + 1)]
    script = ChatScript()
    with StrictProvider(script) as provider:
        done = _run(AIDER, home, project, store, provider.address, "\n".join([*questions, "/exit"]))
    shown = f"{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
    assert not provider.refused, [request.faults for request in provider.refused]
    assert (done.returncode, len(script.main), provider.overflows) == (0, STEPS, 1), shown
    for number, request in enumerate(script.main, start=1):
        text = "\n".join(strings(request.body))
        assert all(each in text for each in (*RULES, *questions[:number])), number
    figures = re.search(r"([\d,]+) compressions?", done.stderr)
    assert figures is not None, shown
    assert 2 <= int(figures[1]) <= STEPS / 5
    _check_configs(AIDER, home)
    assert not _processes_left(str(tmp_path)), "a process is left behind"


def _write_configs(case: Case, home: Path) -> None:
    for name, text in case.configs.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, "utf-8")


def _check_configs(case: Case, home: Path) -> None:
    for name, text in case.configs.items():
        assert (home / name).read_text("utf-8") == text, name


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_long_loop_stays_valid_and_keeps_rules_and_prompts(
    case: Case, tmp_path: Path
) -> None:
    _skip_without("npm", "node_modules")
    home, project = tmp_path / "home", tmp_path / "project"
    make_project(project, STEPS)
    _write_configs(case, home)
    store = f"sqlite:///{tmp_path / 'enfold.db'}"
    async with open_engine(store) as engine:
        await engine.models.edit(case.model, max_input=case.window)
    script = LoopScript(case.tools, project, STEPS)
    with StrictProvider(script) as provider:
        done = _run(case, home, project, store, provider.address)
    shown = f"{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
    assert not provider.refused, [request.faults for request in provider.refused]
    assert done.returncode == 0, shown
    assert script.is_finished, f"{script.step} steps\n{shown}"
    figures = re.search(
        r"^enfold: ([\d,]+) requests?, ([\d,]+) compressions?", done.stderr, re.MULTILINE
    )
    assert figures is not None, shown
    compressions = int(figures[2])
    found = examine(script.main)
    assert found.requests == STEPS + 1, "a step was repeated"
    assert not found.without_rule
    assert not found.without_prompt
    assert provider.overflows == 1
    assert compressions >= 2, shown
    assert compressions <= found.requests / 5, (compressions, found.requests)
    assert found.breaks <= compressions, "the prefix changed without a compression"
    _check_configs(case, home)
    assert not _processes_left(str(tmp_path)), "a process is left behind"


def _run(
    case: Case, home: Path, project: Path, store: str, upstream: str, typed: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": ":".join(
            (*(str(INSTALLED / each) for each in ("node_modules/.bin", "aider/bin")), PATH)
        ),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "PYTHONPATH": str(ROOT / "src"),
        "ENFOLD_DB": store,
        **{f"ENFOLD_{name}_BASE_URL": upstream for name in ("OPENAI", "ANTHROPIC", "GEMINI")},
        **QUIET,
        **case.variables,
    }
    return subprocess.run(
        [sys.executable, "-m", "enfold.cli", "wrap", "--no-ui", case.name, *case.arguments],
        cwd=project,
        env=environment,
        stdin=None if typed else subprocess.DEVNULL,
        input=typed or None,
        capture_output=True,
        text=True,
        timeout=1_000,
        check=False,
    )


def _processes_left(text: str) -> list[str]:
    """The processes of a run that do not end by themselves; they get time to do so."""
    deadline = time.monotonic() + 120
    while (found := _processes_with(text)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def _processes_with(text: str) -> list[str]:
    """The processes whose environment names the folder: the agent, its children, the server."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue  # it has ended, or belongs to another user
    return found
