"""`enfold hook`: a coding agent is told what it may recall after a compaction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import enfold as library
from enfold.engine.agent_notes import MAX_BYTES, recall_note
from tests.cli.conftest import Enfold

SESSION = "5b1c2a9e-0b7c-4a51-8f5e-6a2f7d3c9e10"


def _log(path: Path, prompts: list[str]) -> Path:
    """A log as Claude Code writes it."""
    lines = []
    for number, prompt in enumerate(prompts):
        for role, text in (("user", prompt), ("assistant", "Done.")):
            lines.append(
                {
                    "type": role,
                    "uuid": f"{role}-{number}",
                    "parentUuid": f"assistant-{number - 1}" if role == "user" and number else None,
                    "sessionId": SESSION,
                    "timestamp": f"2026-05-0{number % 9 + 1}T10:00:00.000Z",
                    "message": {"role": role, "content": text},
                }
            )
            if role == "assistant":
                lines[-1]["parentUuid"] = f"user-{number}"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


def _event(name: str, log: Path, **more: Any) -> bytes:
    event = {"hook_event_name": name, "session_id": SESSION, "transcript_path": str(log), **more}
    return json.dumps(event).encode()


def test_the_log_is_stored_before_a_compaction_and_mentioned_after_it(
    stored: Enfold, tmp_path: Path
) -> None:
    log = _log(tmp_path / "log.jsonl", [f"Paint wall {number} green." for number in range(90)])
    before = stored("hook", stdin=_event("PreCompact", log, trigger="auto"))
    assert (before.code, before.text) == (0, "")
    log.unlink()
    after = stored("hook", stdin=_event("SessionStart", log, source="compact"))
    assert after.code == 0
    hook_output = after.json["hookSpecificOutput"]
    note = hook_output["additionalContext"]
    assert hook_output["hookEventName"] == "SessionStart"
    assert "180 messages from 2026-05-01 to 2026-05-09" in note
    assert "- message 1: Paint wall 0 green." in note
    assert "Paint wall 89 green." in note
    assert len(note.encode()) <= MAX_BYTES
    found = stored("recall", SESSION, "Which colour has wall 41?")
    assert "Paint wall 41 green." in found.text


@pytest.mark.parametrize(
    "given", [b"", b"[]", b'{"hook_event_name": "SessionStart"'], ids=["empty", "array", "broken"]
)
def test_a_wrong_event_never_stops_a_compaction(stored: Enfold, given: bytes) -> None:
    done = stored("hook", stdin=given)
    assert (done.code, done.text) == (1, "")
    assert done.stderr_text


def test_a_new_session_gets_no_hint(stored: Enfold, tmp_path: Path) -> None:
    log = _log(tmp_path / "log.jsonl", ["Hello"])
    done = stored("hook", stdin=_event("SessionStart", log, source="startup"))
    assert (done.code, done.text) == (0, "")


async def test_the_session_of_the_agents_requests_comes_first(tmp_path: Path) -> None:
    async with library.open(f"sqlite:///{tmp_path / 'enfold.db'}") as engine:
        assert await engine.find_of_client("client-session-0001") is None
        session = await engine.session("other")
        await session.append("Hello")
        assert "1 messages" in await recall_note(session)
