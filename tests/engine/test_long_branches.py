"""A branch that is too long to be read at once is measured by sums and compressed in steps."""

from __future__ import annotations

import pytest

from enfold.engine import Session
from enfold.errors import BlockedError, SummaryError
from enfold.store import snapshots
from tests.engine.conftest import WINDOW, Bench, talk

MOST = 40
"""Messages that are read at once in these tests."""
TURNS = 150


@pytest.fixture
def read_at_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of messages of the views that were read."""
    read: list[int] = []
    view_of = snapshots.view

    def recording(*given: object, **options: object) -> object:
        found = view_of(*given, **options)  # type: ignore[arg-type]
        read.append(len(found.after))
        return found

    monkeypatch.setattr(snapshots, "LONGEST_VIEW", MOST)
    monkeypatch.setattr(snapshots, "view", recording)
    return read


async def long_session(bench: Bench) -> Session:
    session = await bench.session()
    await talk(session, TURNS, words=100)
    return session


async def test_status_comes_from_stored_sums(bench: Bench, read_at_once: list[int]) -> None:
    session = await long_session(bench)
    stored = sum(row.tokens for row in await session.history(limit=1_000))
    status = await session.status()
    assert status.current_token_count == stored
    assert status.needs_compression
    assert status.messages == 2 * TURNS
    assert status.retained_message_count + status.compressible_message_count == 2 * TURNS
    assert max(read_at_once) <= MOST


async def test_the_first_compression_runs_in_steps(bench: Bench, read_at_once: list[int]) -> None:
    session = await long_session(bench)
    prepared = await session.prepare()
    assert prepared.decision.action == "keep"
    assert prepared.view.tokens <= WINDOW
    assert max(read_at_once) <= MOST
    made = await session.summaries()
    assert len(made) >= 2 * TURNS // MOST - 1
    # Every message was given to the summarizer once, or is in the view.
    requests = bench.summarizer.requests
    read = [str(message) for request in requests for message in request.messages]
    shown = [str(message) for message in prepared.view.messages]
    for turn in range(TURNS):
        for words in (f"Question {turn}: ", f"Answer {turn}: "):
            assert sum(words in text for text in read) == 1 or any(words in text for text in shown)
    first = (await session.history(limit=1_000))[0].id
    assert made[0].message_range is not None
    assert made[0].message_range["firstMessageId"] == first
    # What comes after the cutoff is no long branch, however deep it is.
    await talk(session, 12, start=TURNS, words=400)
    status = await session.status()
    assert status.current_token_count > WINDOW
    expected = len(prepared.view.shown) + 24
    assert status.retained_message_count + status.compressible_message_count == expected


async def test_a_step_that_fails_blocks_and_skips_nothing(
    bench: Bench, read_at_once: list[int]
) -> None:
    session = await long_session(bench)
    bench.summarizer.script(SummaryError("the model is gone"))
    await session.configure(on_failure="block")
    with pytest.raises(BlockedError):
        await session.prepare()
    assert await session.summaries() == ()
    assert max(read_at_once) <= MOST
