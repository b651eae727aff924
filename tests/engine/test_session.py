"""A session: the messages sent to the model, and the time of its compression."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, ClassVar

import pytest

import enfold
from enfold import tokens
from enfold.engine import Session
from enfold.errors import BlockedError, InputError, NotFoundError, SummaryError, TokenCountError
from enfold.events import CompressionFailed, CompressionFinished
from enfold.messages import Message, Text
from enfold.summaries import HEADING, SummaryRequest
from enfold.testing import assistant, call, result, user
from tests.engine.conftest import MODEL, Bench, talk

TOO_LONG = " ".join(f"alpha {number}" for number in range(1_500))


def summaries_in(messages: tuple[Message, ...]) -> list[str]:
    return [
        part.text
        for message in messages
        for part in message.parts
        if isinstance(part, Text) and part.text.startswith(HEADING)
    ]


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for m in messages for part in m.parts if isinstance(part, Text)]


async def full(bench: Bench, id: str = "chat") -> Session:
    """A session over the threshold: 40 turns of about 110 tokens."""
    session = await bench.session(id)
    await talk(session, 40)
    return session


async def test_a_short_session_is_sent_as_it_is(bench: Bench) -> None:
    session = await bench.session()
    await session.append("Hello", assistant("Hi!"))
    prepared = await session.prepare("How are you?")
    assert prepared.decision.action == "keep"
    assert texts(prepared.messages) == ["Hello", "Hi!", "How are you?"]
    assert bench.summarizer.requests == []


async def test_pending_messages_are_counted_and_sent_but_not_stored(bench: Bench) -> None:
    session = await bench.session()
    await session.append("Hello", assistant("Hi!"))
    prepared = await session.prepare("How are you?")
    assert prepared.decision.load.pending > 0
    assert len(await session.messages()) == 2


async def test_a_full_session_is_compressed_before_it_is_sent(bench: Bench) -> None:
    session = await full(bench)
    before = await session.status()
    prepared = await session.prepare("And now?")
    assert before.needs_compression
    assert prepared.compression is not None
    assert prepared.compression.compressed
    assert prepared.decision.action == "keep"
    assert prepared.decision.tokens <= prepared.decision.limit * 0.6
    assert summaries_in(prepared.messages)[0].count("They agreed on the plan.") == 1
    assert texts(prepared.messages)[-1] == "And now?"
    assert bench.names() == [
        "compression.started",
        "compression.progress",
        "compression.progress",
        "compression.finished",
    ]


async def test_the_request_that_goes_out_holds_one_summary_in_every_dialect(bench: Bench) -> None:
    session = await full(bench)
    prepared = await session.prepare("And now?")
    sent = prepared.render("openai")
    (summary,) = (message for message in sent if message["role"] == "system")
    assert summary["content"].startswith(HEADING)
    assert sum(HEADING in str(message) for message in sent) == 1
    anthropic = prepared.render("anthropic")
    assert anthropic[0]["role"] == "user"
    assert HEADING in str(anthropic[0])
    assert "system" not in {message["role"] for message in anthropic}
    assert sum(HEADING in str(message) for message in anthropic) == 1


async def test_summarized_messages_stay_in_the_history_and_can_be_found(bench: Bench) -> None:
    session = await full(bench)
    await session.compress()
    assert len(await session.messages()) == 80
    page = await session.history(limit=10)
    assert len(page) == 10
    older = await session.history(before=page[0].id, limit=10)
    assert older[-1].depth == page[0].depth - 1
    hits = await session.search('"Question 3"')
    assert [hit.role for hit in hits] == ["user"]


async def test_between_two_compressions_the_view_only_grows_at_its_end(bench: Bench) -> None:
    session = await full(bench)
    first = (await session.prepare("a")).messages[:-1]
    await talk(session, 2, start=100)
    second = (await session.prepare("b")).messages[:-1]
    assert second[: len(first)] == first
    assert len(second) == len(first) + 4


async def test_the_next_summary_is_given_the_last_one_and_every_new_message(bench: Bench) -> None:
    await bench.engine.set("words_share", 0)
    session = await full(bench)
    await session.prepare()
    kept = texts((await session.prepare()).view.messages)
    await talk(session, 40, start=100)
    await session.prepare()
    first, second = bench.summarizer.requests
    assert first.previous is None
    assert second.previous == "They agreed on the plan."
    summarized = texts(second.messages)
    tail = texts((await session.prepare()).view.messages)
    assert summarized[: len(kept)] == kept
    assert len(texts(first.messages)) + len(summarized) + len(tail) == 160
    assert len(summaries_in((await session.prepare()).messages)) == 1


async def test_the_summarizer_sees_what_stays_as_context_only(bench: Bench) -> None:
    session = await full(bench)
    await session.prepare()
    (request,) = bench.summarizer.requests
    tail = (await session.prepare()).view.messages
    assert request.recent == tail
    assert not set(texts(request.recent)) & set(texts(request.messages))


async def test_shared_summaries_are_written_without_a_look_ahead(bench: Bench) -> None:
    first = await full(bench, "first")
    await first.compress(share_across_branches=True)
    await bench.engine.set("share_across_branches", True)
    session = await full(bench)
    prepared = await session.prepare()
    by_call, by_setting = bench.summarizer.requests
    later = prepared.view.messages[prepared.view.covered :]
    assert later
    assert not set(texts(by_call.recent)) & set(texts(later))
    assert not set(texts(by_setting.recent)) & set(texts(later))


async def test_a_manual_compression_keeps_as_much_as_it_is_asked_to(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    usual = await session.preview()
    wide = await session.preview(keep_tokens=1_000)
    assert wide.kept_messages > usual.kept_messages
    done = await session.compress(keep_tokens=1_000)
    assert done.messages == wide.messages
    assert done.tokens_after <= wide.tokens_after


async def test_retention_of_one_run_can_be_given_in_messages(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    await session.configure(words_share=0)
    preview = await session.preview(keep_messages=10)
    done = await session.compress(keep_messages=10)
    assert (preview.kept_messages, preview.messages) == (10, 30)
    assert done.messages == 30
    with pytest.raises(InputError, match="give one of them"):
        await session.compress(keep_tokens=1, keep_messages=1)


async def test_without_force_only_what_is_due_is_compressed(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    assert (await session.compress(force=False)).outcome == "kept"
    await talk(session, 20, start=20)
    assert (await session.compress(force=False)).compressed


async def test_a_preview_asks_no_model_and_writes_nothing(bench: Bench) -> None:
    session = await full(bench)
    preview = await session.preview()
    assert preview.author == "scripted"
    assert preview.tokens_after < preview.tokens_before
    assert (preview.strategy, preview.cost) == ("native", 0.0)
    in_passes = await session.preview(strategy="smart")
    assert [step.name for step in in_passes.steps][-1] == "Summarize old messages"
    assert in_passes.steps[-1].tokens_after == in_passes.tokens_after
    assert bench.summarizer.requests == []
    assert await session.summaries() == ()


async def test_few_tokens_are_compressed_with_a_warning(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 6)
    done = await session.compress()
    assert done.compressed
    assert any("only" in warning for warning in done.warnings)


async def test_nothing_to_compress_and_nothing_new_are_outcomes(bench: Bench) -> None:
    session = await bench.session()
    assert (await session.compress()).outcome == "nothing_to_compress"
    await session.append("Hello")
    assert (await session.compress()).outcome == "nothing_to_compress"
    await talk(session, 20)
    assert (await session.compress()).compressed
    assert (await session.compress()).outcome == "nothing_new"
    assert len(await session.summaries()) == 1


async def test_a_summary_longer_than_its_messages_is_an_outcome(bench: Bench) -> None:
    session = await bench.session()
    await session.append("Hi", assistant("Hello"), user("And?"))
    done = await session.compress(keep_tokens=0)
    assert done.outcome == "no_gain"
    assert "became" in done.warnings[0]
    assert await session.summaries() == ()
    (ended,) = [event for event in bench.events if isinstance(event, CompressionFailed)]
    assert (ended.code, ended.retryable) == ("no_gain", False)


async def test_a_failed_compression_blocks_the_session_and_leaves_nothing(bench: Bench) -> None:
    bench.summarizer.script(SummaryError("the model is away"))
    session = await full(bench)
    with pytest.raises(BlockedError, match="the model is away") as caught:
        await session.prepare("And now?")
    assert isinstance(caught.value.__cause__, SummaryError)
    assert await session.summaries() == ()
    assert (await session.status()).blocked == "the model is away"
    assert bench.names() == [
        "compression.started",
        "compression.progress",
        "compression.failed",
        "session.blocked",
    ]
    with pytest.raises(BlockedError):
        await session.prepare("And now?")
    assert len(bench.summarizer.requests) == 1


async def test_the_log_of_a_failure_names_the_model_and_the_cause(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.summarizer.script(SummaryError("the model is away"))
    await bench.engine.set("model", MODEL)
    session = await bench.engine.session("without a model of its own")
    await talk(session, 40)
    with pytest.raises(BlockedError):
        await session.prepare("And now?")
    (line,) = [each for each in caplog.messages if each.startswith("compression failed")]
    assert f"model={MODEL} code=summary_failed automatic=True cause=the model is away" in line
    assert "alpha" not in line


async def test_a_failed_count_is_logged_at_every_door(
    bench: Bench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(texts: list[str]) -> list[int]:
        raise MemoryError(texts)

    session = await bench.session()
    monkeypatch.setattr(tokens.get("o200k_base"), "_count_texts", broken)
    new = "Words that nothing has counted before"
    for door in (
        session.append(new),
        session.prepare(new),
        session.status(new),
        enfold.condense([{"role": "user", "content": new}], strategy="lossless", target=1),
    ):
        caplog.clear()
        with pytest.raises(TokenCountError):
            await door
        assert "counting failed: tokenizer=o200k_base" in caplog.text
        assert "cause=MemoryError" in caplog.text
        assert new not in caplog.text


async def test_a_retry_that_succeeds_lets_the_session_go_on(bench: Bench) -> None:
    bench.summarizer.script(SummaryError("the model is away"), "Back again.")
    session = await full(bench)
    with pytest.raises(BlockedError):
        await session.prepare()
    assert (await session.retry()).compressed
    assert (await session.status()).blocked is None
    assert (await session.prepare("And now?")).decision.action == "keep"
    assert bench.names()[-1] == "session.unblocked"


async def test_an_acknowledged_risk_lets_one_request_go_on_with_a_warning(bench: Bench) -> None:
    bench.summarizer.script(SummaryError("the model is away"))
    session = await full(bench)
    with pytest.raises(BlockedError):
        await session.prepare()
    await session.acknowledge()
    prepared = await session.prepare("And now?")
    assert len(prepared.messages) == 81
    assert "acknowledged" in prepared.warnings[0]
    assert len(bench.summarizer.requests) == 1
    # It covers one request. The next one tries again, and blocks again or goes on.
    with pytest.raises(BlockedError):
        await session.prepare("And now?")
    await session.acknowledge()
    assert (await session.prepare("And now?")).warnings
    bench.summarizer.script("They agreed on the plan.")
    prepared = await session.prepare("And now?")
    assert prepared.view.summary == "They agreed on the plan."
    assert prepared.warnings == ()


async def test_a_failed_manual_compression_blocks_nothing(bench: Bench) -> None:
    bench.summarizer.script(SummaryError("the model is away"))
    session = await bench.session()
    await talk(session, 20)
    with pytest.raises(SummaryError, match="the model is away"):
        await session.compress()
    assert (await session.status()).blocked is None
    assert "session.blocked" not in bench.names()


@pytest.mark.parametrize("reply", ["", " \n"])
async def test_an_empty_summary_is_a_failure(bench: Bench, reply: str) -> None:
    bench.summarizer.script(reply)
    session = await full(bench)
    with pytest.raises(BlockedError, match="empty"):
        await session.prepare()
    assert await session.summaries() == ()


async def test_a_summary_that_is_too_long_is_asked_for_again_tighter(bench: Bench) -> None:
    bench.summarizer.script(TOO_LONG, "Alpha and beta.")
    session = await full(bench)
    assert (await session.compress()).summary == "Alpha and beta."
    assert [request.tightness for request in bench.summarizer.requests] == [0, 1]


async def test_a_summary_that_stays_too_long_is_replaced_by_the_built_in_one(bench: Bench) -> None:
    bench.summarizer.script(TOO_LONG)
    session = await full(bench)
    done = await session.compress()
    assert done.author == "local"
    (note,) = [each for each in done.warnings if "without the end of a sentence" in each]
    assert note.endswith("the built-in summarizer wrote it")


async def test_a_failed_second_attempt_leaves_the_first_one(bench: Bench) -> None:
    bench.summarizer.script(
        " ".join(f"They agreed on plan {number}." for number in range(600)),
        SummaryError("the model is away"),
    )
    session = await full(bench)
    done = await session.compress()
    assert done.author == "scripted"
    assert "the model is away" in done.warnings


async def test_a_message_that_does_not_fit_is_shortened_once_and_no_loop(bench: Bench) -> None:
    session = await bench.session()
    await session.append(user("alpha " * 6_000))
    first = await session.prepare()
    assert any("shown in part" in warning for warning in first.warnings)
    again = await session.prepare()
    assert again.compression is None
    assert again.view.tokens == first.view.tokens <= 3_800
    assert bench.summarizer.requests == []


async def test_a_compression_that_takes_too_long_is_given_up(bench: Bench) -> None:
    async def slow(_request: SummaryRequest) -> str:
        await asyncio.sleep(60)
        return "Too late."

    bench.summarizer.script(slow)
    session = await full(bench)
    with pytest.raises(SummaryError, match=r"given up after 0\.05 s"):
        await session.compress(timeout=0.05)
    assert await session.summaries() == ()


async def test_a_cancelled_compression_leaves_nothing_behind(bench: Bench) -> None:
    started = asyncio.Event()

    async def waiting(_request: SummaryRequest) -> str:
        started.set()
        await asyncio.sleep(60)
        return "Too late."

    bench.summarizer.script(waiting)
    session = await full(bench)
    task = asyncio.create_task(session.compress())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await session.summaries() == ()
    ended = bench.events[-1]
    assert isinstance(ended, CompressionFailed)
    assert (ended.code, ended.retryable) == ("cancelled", True)
    bench.summarizer.script("In time.")
    assert (await session.compress()).compressed


async def test_messages_that_arrive_meanwhile_land_after_the_summary(bench: Bench) -> None:
    session = await full(bench)
    last = (await session.messages())[-1]

    async def chatty(_request: SummaryRequest) -> str:
        await session.append("One more thing", assistant("Yes?"))
        return "Meanwhile."

    bench.summarizer.script(chatty)
    await session.compress()
    shown = (await session.prepare()).view.messages
    assert texts(shown)[-2:] == ["One more thing", "Yes?"]
    assert last in shown


async def test_undo_shows_again_what_was_summarized_and_stays_undone_for_a_while(
    bench: Bench,
) -> None:
    session = await full(bench)
    await session.prepare()
    undone = await session.undo()
    assert undone is not None
    assert undone.undone
    prepared = await session.prepare()
    assert len(prepared.messages) == 80
    assert prepared.decision.reason == "turned_off"
    await session.append("A new thought", assistant("Indeed."))
    assert (await session.prepare()).compression is not None


async def test_undo_falls_back_to_the_summary_before(bench: Bench) -> None:
    bench.summarizer.script("First.", "Second.")
    session = await full(bench)
    await session.prepare()
    await talk(session, 40, start=100)
    await session.prepare()
    assert "Second." in summaries_in((await session.prepare()).messages)[0]
    await session.undo()
    assert (await session.prepare(auto_compress=False)).view.summary == "First."
    await session.undo()
    assert await session.undo() is None


async def test_a_summary_belongs_to_the_branch_that_made_it(bench: Bench) -> None:
    session = await full(bench)
    history = await session.history(limit=100)
    await session.compress()
    await session.append("Go on", after=history[9].id)
    forked = await session.prepare()
    assert forked.view.summary is None
    assert len(forked.messages) == 11
    await session.switch(history[-1].id)
    assert (await session.prepare()).view.summary == "They agreed on the plan."
    assert len(await session.branches()) == 2


async def test_another_reply_to_the_same_question_keeps_the_summary(bench: Bench) -> None:
    session = await full(bench)
    await session.compress()
    tip = (await session.history(limit=1))[0].id
    await session.append("What next?", assistant("This."))
    await session.append("What next?", assistant("That."), after=tip)
    prepared = await session.prepare()
    assert prepared.view.summary == "They agreed on the plan."
    assert texts(prepared.messages)[-1] == "That."


async def test_a_shared_summary_serves_every_branch_its_cutoff_is_on(bench: Bench) -> None:
    session = await full(bench)
    done = await session.compress(share_across_branches=True)
    history = await session.history(limit=100)
    cutoff = next(row for row in history if row.id == done.cutoff)
    await session.append("Go on", after=history[cutoff.depth].id)
    assert (await session.prepare(auto_compress=False)).view.summary is None
    shared = await session.prepare(share_across_branches=True)
    assert shared.view.summary == "They agreed on the plan."


async def test_a_summary_can_be_written_anew_with_the_same_cutoff(bench: Bench) -> None:
    bench.summarizer.script("First.", "Better.")
    session = await full(bench)
    first = await session.compress()
    again = await session.regenerate()
    assert again.cutoff == first.cutoff
    assert (await session.prepare()).view.summary == "Better."
    assert bench.summarizer.requests[0].messages == bench.summarizer.requests[1].messages


async def test_a_failed_regeneration_is_reported(bench: Bench) -> None:
    session = await full(bench)
    await session.compress()
    bench.summarizer.script(SummaryError("the model is away"))
    with pytest.raises(SummaryError):
        await session.regenerate()
    assert bench.names()[-1] == "compression.failed"


async def test_the_finished_event_has_steps_and_cost(bench: Bench) -> None:
    session = await full(bench)
    done = await session.compress()
    (finished,) = [event for event in bench.events if isinstance(event, CompressionFinished)]
    assert (finished.strategy, finished.cost) == ("native", done.cost)
    assert finished.steps == (("summarize", done.tokens_before, done.tokens_after),)


async def test_another_branch_has_its_own_history(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 3)
    first = (await session.history())[0]
    (other,) = await session.append(assistant("Elsewhere."), after=first.id)
    await session.switch((await session.branches())[0].tip)
    there = session.at(other)
    assert [row.depth for row in await there.history()] == [1, 2]
    assert len(await session.history()) == 6
    assert [hit.message for hit in await there.search("elsewhere", on_branch=True)] == [other]
    assert list(await session.search("elsewhere", on_branch=True)) == []


async def test_messages_are_added_to_the_branch_that_a_session_works_at(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 3)
    rows = await session.history()
    (other,) = await session.append(assistant("Elsewhere."), after=rows[0].id)
    await session.switch(rows[-1].id)
    there = session.at(other)
    added = [*await there.append(user("Next?")), *await there.append(assistant("Further on."))]
    assert [row.id for row in await there.history()] == [rows[0].id, other, *added]
    assert [row.id for row in await session.at(rows[-1].id).history()] == [row.id for row in rows]


async def test_a_summary_that_was_edited_or_written_anew_can_be_again(bench: Bench) -> None:
    bench.summarizer.script("First.", "Second.", "Third.", "Fourth.")
    session = await full(bench)
    first = await session.compress()
    await session.edit_summary("Mine.")
    for words in ("Second.", "Third."):
        again = await session.regenerate()
        assert (again.cutoff, again.messages) == (first.cutoff, first.messages)
        assert (await session.prepare()).view.summary == words
    await session.edit_summary("Mine again.")
    await session.regenerate()
    requests = bench.summarizer.requests
    assert all(request.messages == requests[0].messages for request in requests)
    assert all(request.previous is None for request in requests)


async def test_writing_anew_keeps_the_summary_before_it(bench: Bench) -> None:
    bench.summarizer.script("Of the beginning.", "Of more.", "Of more, better.")
    session = await full(bench)
    await session.compress()
    await session.append(*(f"{turn} and more " * 30 for turn in range(20)))
    await session.compress()
    await session.edit_summary("Of more, mine.")
    await session.regenerate()
    assert bench.summarizer.requests[-1].previous == "Of the beginning."
    assert bench.summarizer.requests[-1].messages == bench.summarizer.requests[-2].messages


async def test_savings_are_known_for_models_with_a_price(bench: Bench) -> None:
    session = await full(bench)
    assert (await session.compress()).report.saved is None
    await session.undo()
    priced = await bench.engine.session(session.id, model="openai:gpt-4o")
    done = await priced.compress(keep_tokens=400)
    assert done.compressed
    less = done.tokens_before - done.tokens_after
    assert done.report.saved == pytest.approx(less * 2.5 / 1_000_000)


async def test_a_summary_can_be_edited_and_deleted(bench: Bench) -> None:
    session = await full(bench)
    await session.compress()
    edited = await session.edit_summary("What I meant.")
    assert edited.author == "user"
    assert (await session.prepare()).view.summary == "What I meant."
    assert [snapshot.text for snapshot in await session.summaries()] == [
        "What I meant.",
        "They agreed on the plan.",
    ]
    await session.delete_summary(edited.id)
    view = (await session.prepare(auto_compress=False)).view
    assert (view.summary, len(view.shown)) == (None, 80)
    assert [snapshot.text for snapshot in await session.summaries()] == [None, None]


async def test_a_text_that_was_edited_out_comes_back_only_if_it_is_asked_for(bench: Bench) -> None:
    bench.summarizer.script("The password is hunter2.", "A plan was made.")
    session = await full(bench)
    await session.compress()
    await session.edit_summary("A plan was made.")
    await session.regenerate()
    await session.undo(to_earlier_text=True)
    assert (await session.prepare()).view.summary == "A plan was made."
    await session.undo()
    view = (await session.prepare(auto_compress=False)).view
    assert (view.summary, len(view.shown)) == (None, 80)


async def test_a_second_summary_stands_for_all_messages_before_it(bench: Bench) -> None:
    session = await full(bench)
    first = await session.compress()
    await talk(session, 20, start=40)
    second = await session.compress()
    newest, oldest = await session.summaries()
    history = await session.history(limit=1_000)
    assert newest.content["messagesIncluded"] == first.messages + second.messages
    assert newest.content["messagesAdded"] == second.messages
    assert newest.message_range == {"firstMessageId": history[0].id, "lastMessageId": second.cutoff}
    assert oldest.message_range == {"firstMessageId": history[0].id, "lastMessageId": first.cutoff}
    await session.append(
        user("Read it."), assistant("", call("1")), result("1", "line\n" * 200), assistant("Done.")
    )
    await talk(session, 10, start=60)
    await session.configure(strategy="truncation")
    await session.compress(keep_messages=2)
    carried, _, _ = await session.summaries()
    assert carried.message_range == newest.message_range
    assert carried.content["messagesIncluded"] == newest.content["messagesIncluded"]
    assert carried.token_count == newest.token_count is not None


async def test_a_compression_without_a_summary_has_no_tokens_of_one(bench: Bench) -> None:
    session = await bench.session()
    for n in range(4):
        await session.append(
            user(f"Read it, {n}."), assistant("", call(f"c{n}")), result(f"c{n}", "line\n" * 200)
        )
    await session.append(assistant("Done."))
    await session.compress(strategy="truncation", keep_messages=2)
    (stored,) = await session.summaries()
    assert (stored.content["summaryText"], stored.token_count) == (None, None)


async def test_another_reply_after_a_manual_compression_keeps_the_summary(bench: Bench) -> None:
    session = await full(bench)
    await session.append("What next?")
    question = (await session.history(limit=1))[0].id
    await session.append(assistant("A secret of this reply."))
    await session.compress()
    (request,) = bench.summarizer.requests
    assert texts(request.recent)[-1] == "What next?"
    await session.append(assistant("Another reply."), after=question)
    view = (await session.prepare()).view
    assert view.summary == "They agreed on the plan."
    assert texts(view.messages)[-1] == "Another reply."


async def test_without_a_summary_there_is_none_to_edit(bench: Bench) -> None:
    session = await bench.session()
    with pytest.raises(NotFoundError, match="no summary"):
        await session.edit_summary("x")
    with pytest.raises(NotFoundError, match="no summary"):
        await session.regenerate()


async def test_status_has_the_figures_of_a_context_check(bench: Bench) -> None:
    session = await full(bench)
    status = await session.status("And now?", system="Be brief.")
    assert status.context_limit == 4_000 - 200 - status.decision.load.reserved
    assert status.threshold_token_count == int(status.context_limit * 0.95)
    assert status.utilization > 1
    assert status.retention_token_budget == 300
    assert status.retained_message_count + status.compressible_message_count == 80
    assert status.messages == 80
    assert status.current_token_count == status.decision.load.total
    assert (status.model, status.tokenizer) == ("test:small", "o200k_base")


async def test_turned_off_a_session_is_only_compressed_at_the_hard_limit(bench: Bench) -> None:
    await bench.engine.models.edit("test:small", max_input=20_000, max_output=10_000)
    await bench.engine.set("auto_compress", False)
    session = await bench.session()
    await talk(session, 150)
    assert (await session.prepare()).decision.reason == "turned_off"
    await talk(session, 15, start=200)
    assert (await session.prepare()).compression is not None


async def test_an_edit_of_the_model_holds_for_the_next_decision(bench: Bench) -> None:
    session = await full(bench)
    await bench.engine.models.edit("test:small", max_input=100_000, max_output=1_000)
    assert (await session.prepare()).decision.action == "keep"
    reset = await bench.engine.models.reset("test:small")
    assert (reset.max_input, reset.max_output, reset.source) == (128_000, 4_096, "default")


async def test_a_setting_of_the_session_wins_over_one_of_all(bench: Bench) -> None:
    session = await full(bench)
    assert (await session.status()).threshold_source == "default"
    await bench.engine.set("threshold", 0.5)
    assert (await session.status()).threshold_source == "database"
    await session.configure(threshold=0.9)
    assert (await session.status()).decision.threshold.share == 0.9
    assert (await session.status(threshold=0.4)).threshold_source == "call"
    await session.configure(threshold=None)
    assert (await session.status()).decision.threshold.share == 0.5


async def test_a_ratio_of_what_is_available_can_be_the_trigger(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 26)
    assert (await session.status()).needs_compression is False
    assert (await session.status(trigger_ratio=0.7)).needs_compression is True


async def test_a_summarizer_that_is_not_there_is_never_replaced_silently(bench: Bench) -> None:
    session = await full(bench)
    with pytest.raises(BlockedError, match="no summarizer 'gone'"):
        await session.prepare(summarizer="gone")
    assert bench.summarizer.requests == []


async def test_sending_a_history_again_adds_nothing(bench: Bench) -> None:
    session = await bench.session()
    messages = [user("Hello"), assistant("Hi!"), user("Bye")]
    first = await session.append(*messages)
    await session.switch(None)
    again = await session.append(*messages)
    assert again == first
    assert len(await session.branches()) == 1


async def test_a_session_is_deleted_with_all_it_has(bench: Bench) -> None:
    session, other = await full(bench), await bench.session("other")
    await other.append("Hello")
    await session.compress()
    await session.delete()
    with pytest.raises(NotFoundError):
        await session.status()
    assert len(await other.messages()) == 1
    assert await bench.engine.search("Question") == []


async def test_two_at_once_make_one_summary(bench: Bench) -> None:
    session = await full(bench)
    other = await bench.engine.find("chat")
    first, second = await asyncio.gather(session.prepare("a"), other.prepare("b"))
    assert len(bench.summarizer.requests) == 1
    assert len(await session.summaries()) == 1
    assert first.view.summary == second.view.summary == "They agreed on the plan."


async def test_a_session_steps_back_before_its_last_message(bench: Bench) -> None:
    session = await bench.session()
    first, second = await session.append("Hello", assistant("Hi, sailor!"))
    last = await session.step_back()
    assert last is not None
    assert texts((last,)) == ["Hi, sailor!"]
    assert texts(await session.messages()) == ["Hello"]
    assert (await session.message(first)).id == first
    with pytest.raises(NotFoundError, match=second):
        await session.message(second)
    assert not await session.search("sailor", on_branch=True)
    assert [hit.message for hit in await session.search("sailor")] == [second]


class Watched(dict[str, Any]):
    """A message that records the threads in which its role is read."""

    threads: ClassVar[set[str]] = set()

    def __getitem__(self, name: str) -> Any:
        return self.get(name)

    def get(self, name: str, default: Any = None) -> Any:
        if name == "role":
            self.threads.add(threading.current_thread().name)
        return super().get(name, default)


@pytest.mark.parametrize(
    "texts", [["short"] * 100, ["word " * 20_000]], ids=["many messages", "a large message"]
)
async def test_large_appends_are_read_counted_and_hashed_in_a_thread(
    bench: Bench, texts: list[str]
) -> None:
    session = await bench.session()
    Watched.threads.clear()
    await session.append(Watched(role="user", content="short"))
    assert Watched.threads == {threading.current_thread().name}
    Watched.threads.clear()
    await session.append(*(Watched(role="user", content=text) for text in texts))
    assert Watched.threads
    assert all(name.startswith("enfold-count") for name in Watched.threads)
