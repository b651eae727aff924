"""Running compressions, for windows that open in the middle of one."""

from __future__ import annotations

from pathlib import Path

import pytest

import enfold
from enfold.events import CompressionFailed, CompressionFinished, CompressionStarted, Event
from enfold.ui.compression.controls import running

STARTED = CompressionStarted("talk", messages=45, tokens=90_000, strategy="native", automatic=True)


@pytest.mark.parametrize(
    "ended",
    [
        CompressionFinished("talk", "id", 45, 90_000, 9_000, 1.0, "local", automatic=True),
        CompressionFailed("talk", "summary_failed", "away", retryable=True, automatic=True),
    ],
    ids=["finished", "failed"],
)
async def test_a_started_compression_runs_until_it_ends(tmp_path: Path, ended: Event) -> None:
    async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        runs = running(engine, "")
        assert running(engine, "") is runs
        engine.events.within("").emit(STARTED)
        assert runs.of("talk") == STARTED
        assert runs.of("another") is None
        assert running(engine, "others").of("talk") is None
        engine.events.within("").emit(ended)
        assert runs.of("talk") is None
