"""Recorded conversations: those in the folder ENFOLD_DATA, or in ../shared/data beside the project.

Without them, benchmarks use the conversations that `conversations` generates.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from enfold import transcripts, wire
from enfold.messages import Conversation

DATA = Path(
    os.environ.get("ENFOLD_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data"
)
AGENTS = (
    "cc_cipherbox",
    "cc_context_evaluator",
    "cc_entire_cli",
    "cc_viewer_samples",
    "agentv_claude",
    "agentv_codex",
    "mini_swe_gemini3",
    "pi_sessions",
    "swe_agent_traj",
)
"""Return the files with agent sessions."""
SINGLE_PROMPT = ("mini_swe_gemini3", "swe_agent_traj")
"""Of these, the files in which one instruction starts a long tool loop."""
MEETINGS = ("qmsum", "qmsum_train")
"""Files in which every message is a person's."""


def all_sets() -> tuple[str, ...]:
    """Return the names of all files; end the program if there are none."""
    names = tuple(sorted(file.stem for file in DATA.glob("*.jsonl")))
    if not names:
        raise SystemExit(f"no conversations in {DATA}; set ENFOLD_DATA to a folder of .jsonl files")
    return names


def conversations(names: Iterable[str]) -> Iterator[tuple[str, Conversation]]:
    """Yield the id and the main branch of every conversation of these files."""
    for name in names:
        for number, each in enumerate(transcripts.read(DATA / f"{name}.jsonl")):
            yield each.id or f"{name}/{number}", each.conversation()


def longest_session(limit: int) -> list[dict[str, Any]] | None:
    """Return the longest agent session of at most this many bytes, as `openai` messages."""
    files = [file for name in AGENTS if (file := DATA / f"{name}.jsonl").is_file()]
    found = [each for file in files for each in transcripts.read(file)]
    bodies = [wire.render(each.conversation(), "openai") for each in found]
    histories = [body["messages"] if isinstance(body, dict) else body for body in bodies]
    fitting = {size: each for each in histories if (size := len(repr(each))) <= limit}
    return fitting[max(fitting)] if fitting else None
