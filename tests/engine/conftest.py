"""An engine with a small model and a summarizer that does as it is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import enfold
from enfold.engine import Engine, Session
from enfold.events import Event
from enfold.testing import ScriptedSummarizer, assistant, user
from tests.databases import opened_before

MODEL = "test:small"
WINDOW = 4_000
"""Of the small model: limit 3,800 tokens, threshold 3,610."""


@dataclass
class Bench:
    """An engine, who writes its summaries, and what it told."""

    engine: Engine
    summarizer: ScriptedSummarizer
    events: list[Event] = field(default_factory=list)

    async def session(self, id: str = "chat") -> Session:
        """A session of the small model."""
        return await self.engine.session(id, model=MODEL)

    def names(self) -> list[str]:
        """The events in order."""
        return [event.name for event in self.events]


@pytest.fixture
def summarizer() -> ScriptedSummarizer:
    return ScriptedSummarizer("They agreed on the plan.")


@pytest.fixture
async def bench(tmp_path: Path, summarizer: ScriptedSummarizer) -> AsyncIterator[Bench]:
    url = opened_before(tmp_path / "chats.db")
    async with enfold.open(url, summarizers={"scripted": summarizer}) as engine:
        await engine.models.edit(MODEL, max_input=WINDOW, max_output=20_000, retention_tokens=300)
        await engine.set("summarizer", "scripted")
        bench = Bench(engine, summarizer)
        engine.events.subscribe(bench.events.append)
        yield bench


async def talk(session: Session, turns: int, *, words: int = 50, start: int = 0) -> None:
    """Append a number of questions and answers, each of about `words` tokens."""
    for turn in range(start, start + turns):
        await session.append(
            user(f"Question {turn}: " + "alpha " * words),
            assistant(f"Answer {turn}: " + "beta " * words),
        )


@pytest.fixture(autouse=True)
def summarize_words_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let people's words be summarized like all others; their tests set a share."""
    monkeypatch.setenv("ENFOLD_WORDS_SHARE", "0")
