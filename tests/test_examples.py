"""What the README shows, done as it says."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from enfold import cli
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
CHAT = [
    {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}: " + "error E-4031 again " * 9}
    for n in range(40)
]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_every_program_runs(number: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", blocks("python")[number]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_command_works_in_the_order_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("conversation.json").write_text(json.dumps(CHAT))
    Path("session.jsonl").write_text(json.dumps({"id": "chat", "messages": CHAT}) + "\n")
    commands = [
        shlex.split(line, comments=True)
        for block in blocks("sh")
        for line in block.splitlines()
        if line.startswith("enfold ")
    ]
    assert len(commands) >= 5
    for command in commands:
        assert cli.run(command[1:]) == 0, command
    shown = capfd.readouterr().out
    assert json.dumps(CHAT, separators=(",", ":")) in shown
    assert "E-4031" in shown
