"""Sessions with edited messages: their view, their originals, and later messages."""

from __future__ import annotations

from pathlib import Path

import pytest

import enfold
from enfold.engine import Session
from enfold.errors import NotFoundError
from enfold.history import orphans
from enfold.messages import Message, Text, ToolCall, ToolResult
from enfold.records import EditReference, KeptRange, SessionUpdate, SummaryPlace
from enfold.store import sessions, snapshots
from enfold.testing import assistant, call, result, user
from enfold.tokens import count_messages
from tests.engine.conftest import MODEL, Bench, talk

OUTPUT = "\n".join(f"line {n} of the output" for n in range(60))


async def work(session: Session, rounds: int, *, start: int = 0) -> None:
    """Append a number of tool calls with long outputs, then an answer and a question."""
    for number in range(start, start + rounds):
        name = f"call-{number}"
        await session.append(
            user(f"Look at file {number}."),
            assistant(f"Reading {number}.", call(name, "read", {"path": f"src/{number}.py"})),
            result(name, f"file {number}\n{OUTPUT}"),
        )
    await session.append(assistant("Read them all."), user(f"And what is in {start}?"))


def outputs(messages: tuple[Message, ...]) -> list[str]:
    return [
        inner.text
        for message in messages
        for part in message.parts
        if isinstance(part, ToolResult)
        for inner in part.parts
        if isinstance(inner, Text)
    ]


async def truncated(bench: Bench, rounds: int = 6) -> Session:
    # Below its goal a view is made as small as possible.
    await bench.engine.models.edit(MODEL, max_input=8_000)
    session = await bench.session()
    await work(session, rounds)
    done = await session.compress(strategy="truncation")
    assert done.compressed
    return session


async def test_old_output_is_cut_in_the_view_and_whole_in_the_history(bench: Bench) -> None:
    session = await bench.session()
    await work(session, 6)
    before = await session.messages()
    done = await session.compress(strategy="truncation")
    shown = (await session.prepare()).view
    assert (done.strategy, done.author, done.messages, done.summary) == (
        "truncation",
        "truncation",
        0,
        None,
    )
    assert done.edited == sum("truncated" in text for text in outputs(shown.messages)) > 0
    assert done.operations == ("truncate_completed",)
    assert done.tokens_after == shown.tokens < done.tokens_before
    assert list(count_messages(shown.messages)) == [each.tokens for each in shown.shown]
    assert await session.messages() == before
    assert len(shown.messages) == len(before)
    assert shown.messages[-3:] == before[-3:]
    assert orphans(shown.messages) == ()
    assert bench.summarizer.requests == []


async def test_the_cutoff_is_the_tip_and_the_manifest_is_made_of_stretches(bench: Bench) -> None:
    session = await truncated(bench)
    (snapshot,) = await session.summaries()
    history = await session.history(limit=100)
    assert snapshot.cutoff == snapshot.parent == history[-1].id
    assert snapshot.text is None
    assert {type(entry) for entry in snapshot.manifest} == {KeptRange, EditReference}
    assert len(snapshot.manifest) < len(history)
    edits = await bench.engine.store.read(snapshots.all_edits, session.key)
    assert len(edits) == snapshot.content["messagesEdited"]


async def test_new_messages_follow_the_edited_view(bench: Bench) -> None:
    session = await truncated(bench)
    before = (await session.prepare()).view.messages
    await session.append(assistant("The file 0."), user("Thanks."))
    after = (await session.prepare()).view.messages
    assert after[: len(before)] == before
    assert len(after) == len(before) + 2


async def test_undo_shows_everything_again(bench: Bench) -> None:
    session = await truncated(bench)
    await session.undo()
    assert (await session.prepare()).view.messages == await session.messages()


async def test_edits_are_there_after_a_restart(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    async with enfold.open(url) as engine:
        session = await engine.session("chat", model="openai:gpt-4o")
        await work(session, 6)
        await session.compress(strategy="truncation")
        before = (await session.prepare()).view
    async with enfold.open(url) as engine:
        session = await engine.session("chat")
        after = (await session.prepare()).view
        assert after.shown == before.shown
        assert len(await session.messages()) == len(after.shown)


async def test_the_same_again_finds_nothing_new(bench: Bench) -> None:
    session = await truncated(bench)
    assert (await session.compress(strategy="truncation")).outcome == "nothing_new"
    await work(session, 3, start=50)
    again = await session.compress(strategy="truncation")
    assert again.compressed
    assert len(await session.summaries()) == 2


async def test_a_summary_after_edits_includes_them_and_moves_no_cutoff_back(bench: Bench) -> None:
    session = await truncated(bench)
    (first,) = await session.summaries()
    text = "They read src/0.py and src/1.py."
    bench.summarizer.script(text)
    done = await session.compress(keep_tokens=1_550)
    assert (done.strategy, done.summary) == ("native", text)
    view = (await session.prepare()).view
    assert view.summary == text
    assert view.tokens == done.tokens_after
    assert done.cutoff == first.cutoff
    edited = [each for each in view.shown if each.edit is not None]
    assert edited
    assert orphans(view.messages) == ()
    assert len(view.shown) + done.messages == len(await session.messages())
    assert (await session.compress(keep_tokens=1_550)).outcome == "nothing_new"
    await session.undo()
    assert (await session.prepare()).view.snapshot == first.id


async def test_edits_after_a_compression_keep_its_summary_in_place(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 10)
    await session.compress(keep_first=2)
    summarized = (await session.prepare()).view
    await work(session, 6)
    done = await session.compress(strategy="truncation")
    view = (await session.prepare()).view
    assert done.messages == 0
    assert (view.summary, view.summary_at) == (summarized.summary, summarized.summary_at)
    assert view.tokens == done.tokens_after
    manifest = (await session.summaries())[0].manifest
    assert sum(isinstance(entry, SummaryPlace) for entry in manifest) == 1
    assert view.messages[: len(summarized.messages)] == summarized.messages
    await talk(session, 20, start=50)
    summarized_again = await session.compress()
    assert summarized_again.messages > 0
    assert bench.summarizer.requests[-1].previous == summarized.summary


async def test_messages_that_arrive_meanwhile_come_after_the_edits(bench: Bench) -> None:
    session = await truncated(bench)
    await session.append("One more thing")
    texts = [part for message in (await session.prepare()).view.messages for part in message.parts]
    assert texts[-1] == Text("One more thing")


async def test_a_preview_foretells_the_edits_exactly(bench: Bench) -> None:
    await bench.engine.models.edit(MODEL, max_input=8_000)
    session = await bench.session()
    await work(session, 6)
    preview = await session.preview(strategy="truncation")
    done = await session.compress(strategy="truncation")
    assert (preview.messages, preview.tokens_after) == (done.edited, done.tokens_after)


async def test_native_takes_over_if_edits_free_too_little(bench: Bench) -> None:
    await bench.engine.set("strategy", "truncation")
    session = await bench.session()
    await talk(session, 40)
    prepared = await session.prepare("And now?")
    assert prepared.compression is not None
    assert prepared.compression.strategy == "native"
    assert prepared.decision.action == "keep"
    assert prepared.view.summary == "They agreed on the plan."


async def test_no_model_is_called_if_edits_free_enough(bench: Bench) -> None:
    config = {"truncation": {"truncationMode": "suppress", "preserveRecentCount": 3}}
    await bench.engine.set("strategy", "truncation")
    await bench.engine.set("strategy_config", config)
    session = await bench.session()
    await work(session, 12)
    prepared = await session.prepare()
    assert prepared.compression is not None
    assert prepared.compression.strategy == "truncation"
    assert prepared.decision.tokens <= prepared.decision.limit * 0.6
    assert bench.summarizer.requests == []


async def test_a_stored_config_that_is_broken_gives_way_to_the_defaults_and_is_named(
    bench: Bench,
) -> None:
    session = await bench.session()
    broken = {"strategy": "truncation", "strategy_config": {"truncation": {"lines": 3}}}
    await bench.engine.store.write(sessions.update, session.key, SessionUpdate(settings=broken))
    await work(session, 6)
    done = await session.compress()
    assert done.strategy == "truncation"
    assert any("lines: unknown field" in warning for warning in done.warnings)


async def test_a_stored_strategy_that_is_gone_gives_way_to_native_and_is_named(
    bench: Bench,
) -> None:
    session = await bench.session()
    gone = SessionUpdate(settings={"strategy": "gone"})
    await bench.engine.store.write(sessions.update, session.key, gone)
    await talk(session, 20)
    done = await session.compress()
    assert done.strategy == "native"
    assert any("'gone'" in warning for warning in done.warnings)


async def test_edits_without_a_summary_leave_nothing_to_rewrite_or_edit(bench: Bench) -> None:
    session = await truncated(bench)
    with pytest.raises(NotFoundError, match="no summary"):
        await session.edit_summary("x")


async def test_anew_with_another_strategy(bench: Bench) -> None:
    session = await truncated(bench)
    done = await session.regenerate(strategy="native", retention_tokens=400)
    view = (await session.prepare()).view
    assert done.snapshot == view.snapshot
    assert view.summary == "They agreed on the plan."
    assert all(each.edit is None for each in view.shown)


async def test_calls_keep_their_ids_and_stay_objects(bench: Bench) -> None:
    session = await bench.session()
    for number in range(10):
        name = f"c{number}"
        written = call(name, "write", {"path": "a.py", "content": "word " * 300})
        await session.append(user("Write."), assistant("", written), result(name, "ok"))
    await session.append(assistant("Done."), user("Good."))
    await session.compress(strategy="truncation")
    shown = (await session.prepare()).view.messages
    calls = [part for m in shown for part in m.parts if isinstance(part, ToolCall)]
    assert [each.id for each in calls] == [f"c{n}" for n in range(10)]
    short = calls[1].arguments
    assert isinstance(short, dict)
    assert short["path"] == "a.py"
    assert "truncated" in short["content"]


async def test_a_session_of_another_model_is_counted_by_its_tokenizer(bench: Bench) -> None:
    session = await truncated(bench)
    await bench.engine.models.edit(MODEL, tokenizer="cl100k_base")
    view = (await session.prepare()).view
    assert [each.tokens for each in view.shown] == count_messages(view.messages, "cl100k_base")
