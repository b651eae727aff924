"""Sessions whose due compression failed, by the setting `on_failure`."""

from __future__ import annotations

import asyncio
import logging

import pytest

from enfold.engine import Session
from enfold.errors import BlockedError, SummaryError
from enfold.events import CompressionFinished
from enfold.messages import Message, Text
from enfold.store import catalog
from enfold.summaries import SummaryRequest
from enfold.testing import assistant, call, result, user
from tests.engine.conftest import Bench, talk

AWAY = SummaryError("the model is away")


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for m in messages for part in m.parts if isinstance(part, Text)]


async def full(bench: Bench, on_failure: str) -> Session:
    bench.summarizer.script(AWAY)
    session = await bench.session()
    await session.configure(on_failure=on_failure)
    await talk(session, 40)
    return session


async def test_old_messages_without_a_summary_are_left_out_with_the_reason(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    session = await full(bench, "truncate")
    with caplog.at_level(logging.WARNING, "enfold.engine"):
        prepared = await session.prepare("And now?")
    done = prepared.compression
    assert done is not None
    assert done.is_truncated
    assert (done.strategy, done.author) == ("truncation", "truncation")
    assert prepared.warnings[0] == "truncated, because the summary failed: the model is away"
    assert "undo" in prepared.warnings[1]
    assert prepared.decision.action == "keep"
    notice, *rest = texts(prepared.messages)
    assert f"({done.messages} earlier messages were left out here" in notice
    assert rest[-1] == "And now?"
    assert not any(text.startswith("Question 0:") for text in rest)
    assert (await session.status()).blocked is None
    (finished,) = [event for event in bench.events if isinstance(event, CompressionFinished)]
    assert finished.warnings == prepared.warnings
    assert "the model is away" in caplog.text


async def test_the_receipt_and_the_record_say_so_too(bench: Bench) -> None:
    session = await full(bench, "truncate")
    await session.append(user("The key is in /etc/mooring/quay.conf."), assistant("Noted."))
    await talk(session, 20, start=50)
    done = (await session.prepare()).compression
    assert done is not None
    assert done.snapshot is not None
    (snapshot,) = await session.summaries()
    assert snapshot.content["warnings"][0].endswith("the model is away")
    receipt = await session.receipt(done.snapshot)
    assert ("path", "/etc/mooring/quay.conf") in receipt.with_fate("restorable")
    failures = await bench.engine.store.read(catalog.failures_by_day, "")
    assert [(day.code, day.failures) for day in failures] == [("summary_failed", 1)]


async def test_nothing_is_lost_undo_shows_it_and_regenerate_writes_the_summary(
    bench: Bench,
) -> None:
    session = await full(bench, "truncate")
    before = await session.messages()
    await session.prepare()
    assert await session.messages() == before
    bench.summarizer.script("They agreed on the plan.")
    assert (await session.regenerate()).compressed
    shown = texts((await session.prepare()).messages)
    assert "They agreed on the plan." in shown[0]
    assert "left out" not in shown[0]
    assert texts(bench.summarizer.requests[-1].messages)[0].startswith("Question 0:")
    await session.undo()
    await session.undo()
    assert (await session.status()).summary_tokens == 0


async def test_a_summary_that_was_there_before_stays(bench: Bench) -> None:
    session = await full(bench, "truncate")
    bench.summarizer.script("They agreed on the plan.", AWAY)
    await session.prepare()
    await talk(session, 40, start=50)
    done = (await session.prepare()).compression
    assert done is not None
    assert done.is_truncated
    assert done.summary is not None
    assert done.summary.startswith("They agreed on the plan.\n\n(")


async def test_old_tool_output_goes_first_where_that_is_enough(bench: Bench) -> None:
    bench.summarizer.script(AWAY)
    session = await bench.session()
    await session.configure(on_failure="truncate", retention_tokens=100)
    for turn in range(8):
        await session.append(
            user(f"Question {turn}"),
            assistant("", call(f"c{turn}", "read", {"path": "a.py"})),
            result(f"c{turn}", "line of code\n" * 150),
            assistant(f"Answer {turn}"),
        )
    prepared = await session.prepare("And now?")
    done = prepared.compression
    assert done is not None
    assert (done.messages, done.is_truncated) == (0, True)
    assert done.edited > 3
    assert [text for text in texts(prepared.messages) if text.startswith("Question")] == [
        f"Question {turn}" for turn in range(8)
    ]


async def test_a_limit_far_below_the_window_is_kept_too(bench: Bench) -> None:
    bench.summarizer.script(AWAY)
    session = await bench.session()
    await talk(session, 25)
    prepared = await session.prepare(max_tokens=800, retention_tokens=100, on_failure="truncate")
    assert prepared.compression is not None
    assert prepared.compression.is_truncated
    assert prepared.view.tokens <= 800


async def test_a_summarizer_that_takes_too_long_is_a_failure_like_another(bench: Bench) -> None:
    async def never(_request: SummaryRequest) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    session = await full(bench, "truncate")
    bench.summarizer.script(never)
    prepared = await session.prepare(timeout=0.05)
    assert "was given up after 0.05 s" in prepared.warnings[0]
    assert prepared.compression is not None
    assert prepared.compression.is_truncated


async def test_a_last_message_that_does_not_fit_is_shown_in_part(bench: Bench) -> None:
    bench.summarizer.script(AWAY)
    session = await bench.session()
    await session.configure(on_failure="truncate")
    await session.append(user("alpha " * 3_900))
    prepared = await session.prepare()
    assert prepared.view.tokens <= 3_800
    assert any("shown in part" in warning for warning in prepared.warnings)
    assert texts(await session.messages()) == ["alpha " * 3_900]


async def test_a_manual_compression_raises_the_failure(bench: Bench) -> None:
    session = await full(bench, "truncate")
    with pytest.raises(SummaryError, match="the model is away"):
        await session.compress()
    assert await session.summaries() == ()


async def test_a_blocked_session_is_truncated_when_it_is_retried(bench: Bench) -> None:
    session = await full(bench, "block")
    with pytest.raises(BlockedError):
        await session.prepare()
    await session.configure(on_failure="truncate")
    assert (await session.retry()).is_truncated
    assert (await session.status()).blocked is None


async def test_a_blocked_session_is_truncated_at_the_next_request(bench: Bench) -> None:
    session = await full(bench, "block")
    with pytest.raises(BlockedError):
        await session.prepare()
    prepared = await session.prepare(on_failure="truncate")
    assert prepared.compression is not None
    assert prepared.compression.is_truncated
    assert (await session.status()).blocked is None


async def test_on_failure_pass_sends_the_whole_history_with_a_warning_and_retries(
    bench: Bench,
) -> None:
    session = await full(bench, "pass")
    for tries in (1, 2):
        prepared = await session.prepare("And now?")
        assert len(prepared.messages) == 81
        assert "on_failure is pass" in prepared.warnings[0]
        assert len(bench.summarizer.requests) == tries
    bench.summarizer.script("They agreed on the plan.")
    prepared = await session.prepare("And now?")
    assert "They agreed on the plan." in texts(prepared.messages)[0]
    assert prepared.warnings == ()
    assert (await session.status()).blocked is None


@pytest.mark.parametrize("turns", [0, 3, 40])
async def test_an_input_larger_than_the_window_is_sent_in_part(bench: Bench, turns: int) -> None:
    session = await bench.session()
    await talk(session, turns)
    log = " ".join(f"line {number} of the log" for number in range(8_000))
    prepared = await session.prepare(f"Read this. {log} What is wrong?")
    sent = texts(prepared.messages)[-1]
    assert sent.startswith("Read this. line 0")
    assert sent.endswith("What is wrong?")
    assert len(sent) < len(log)
    assert "the new input exceeds the model's window" in prepared.warnings[-1]
    assert prepared.decision.action != "must"
    assert (await session.status()).blocked is None


async def test_an_input_that_fits_after_a_compression_stays_whole(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 40)
    question = "Read this. " + "word " * 1_500
    prepared = await session.prepare(question)
    assert texts(prepared.messages)[-1] == question
    assert not any("larger than" in warning for warning in prepared.warnings)
