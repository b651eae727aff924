"""The views before and after a compression, and the messages of a branch that the view shows."""

from __future__ import annotations

import pytest

from enfold.engine import Session
from enfold.engine.changes import (
    Comparison,
    MessagePlaces,
    read_comparison,
    read_message_places,
)
from enfold.errors import NotFoundError
from enfold.messages import text_of
from enfold.records import SessionKey
from enfold.testing import assistant, call, result, user
from tests.engine.conftest import Bench, talk


async def compare(bench: Bench, key: SessionKey, snapshot: str | None) -> Comparison:
    assert snapshot is not None
    return await bench.engine.store.read(read_comparison, key, snapshot)


async def read_files(session: Session) -> None:
    """Append six rounds, each with a file that a tool read."""
    for n in range(6):
        await session.append(
            user(f"Read it, {n}."),
            assistant("", call(f"c{n}", "read", {"path": f"a{n}.txt"})),
            result(f"c{n}", "\n".join(f"line {n} {i} of the file" for i in range(60))),
            assistant("Done."),
        )


async def test_summarized_messages_stand_on_one_side_only(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    done = await session.compress()
    found = await compare(bench, session.key, done.snapshot)
    assert [stretch.change for stretch in found.stretches] == ["summarized", "kept"]
    assert found.number("summarized") == done.messages
    assert found.number("summarized") + found.number("kept") == 40
    assert (found.summary_before, found.summary_after) == (None, "They agreed on the plan.")
    assert found.is_summary_new
    first = found.stretches[0].pairs[0]
    assert first.depth == 1
    assert first.before == first.original
    assert first.after is None


async def test_a_second_compression_is_compared_with_the_first(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    first = await session.compress()
    await talk(session, 20, start=20)
    bench.summarizer.script("They went on.")
    second = await session.compress()
    found = await compare(bench, session.key, second.snapshot)
    assert found.earlier == first.messages
    assert found.summary_before == "They agreed on the plan."
    assert found.summary_after == "They went on."
    assert found.number("summarized") == second.messages


async def test_other_words_are_compared_with_what_the_compression_began_with(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    done = await session.compress()
    edited = await session.edit_summary("In other words.")
    found = await compare(bench, session.key, edited.id)
    assert found.summary_before is None
    assert found.number("summarized") == done.messages


async def test_a_message_with_other_content_has_both(bench: Bench) -> None:
    session = await bench.session()
    await read_files(session)
    done = await session.compress(strategy="truncation", keep_tokens=100)
    assert done.edited
    found = await compare(bench, session.key, done.snapshot)
    assert found.number("edited") == done.edited
    pairs = [pair for each in found.stretches if each.change == "edited" for pair in each.pairs]
    for pair in pairs:
        assert pair.before == pair.original
        assert pair.after is not None
        assert len(text_of(pair.after.parts)) < len(text_of(pair.original.parts))
    assert not found.is_summary_new


async def test_an_undone_compression_can_still_be_compared(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    done = await session.compress()
    await session.undo()
    assert (await compare(bench, session.key, done.snapshot)).number("summarized") == done.messages


async def test_a_snapshot_that_is_not_there_is_an_error(bench: Bench) -> None:
    session = await bench.session()
    with pytest.raises(NotFoundError, match="no snapshot"):
        await compare(bench, session.key, "nothing")


async def places(bench: Bench, session: Session, tip: str | None = None) -> MessagePlaces:
    return await bench.engine.store.read(
        read_message_places, session.key, bench.engine.static_settings, tip
    )


async def test_without_a_compression_everything_is_shown(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 3)
    found = await places(bench, session)
    assert found.snapshot is None
    assert {found.state(depth) for depth in range(1, 7)} == {"shown"}


async def test_messages_behind_a_summary_are_summarized_and_the_rest_is_shown(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    done = await session.compress(keep_first=2)
    found = await places(bench, session)
    states = [found.state(depth) for depth in range(1, 41)]
    assert found.snapshot == done.snapshot
    assert states.count("summarized") == done.messages
    assert states[:2] == ["shown", "shown"]
    assert states[2] == "summarized"
    assert states[-1] == "shown"


async def test_edited_messages_are_shortened(bench: Bench) -> None:
    session = await bench.session()
    await read_files(session)
    done = await session.compress(strategy="truncation", keep_tokens=100)
    found = await places(bench, session)
    states = [found.state(depth) for depth in range(1, 25)]
    assert states.count("shortened") == done.edited > 0
    assert "summarized" not in states


async def test_a_branch_that_the_compression_was_not_made_on_shows_everything(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    first = (await session.history(limit=40))[0]
    await session.compress()
    (other,) = await session.append(assistant("Another answer."), after=first.id)
    found = await places(bench, session, other)
    assert found.snapshot is None
