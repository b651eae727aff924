"""The view before a compression beside the view after it."""

from __future__ import annotations

import pytest

from enfold.engine.changes import Comparison, read_comparison
from enfold.errors import NotFoundError
from enfold.messages import text_of
from enfold.records import SessionKey
from enfold.testing import assistant, call, result, user
from tests.engine.conftest import Bench, talk


async def compare(bench: Bench, key: SessionKey, snapshot: str | None) -> Comparison:
    assert snapshot is not None
    return await bench.engine.store.read(read_comparison, key, snapshot)


async def test_what_was_folded_is_on_one_side_only(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    done = await session.compress()
    found = await compare(bench, session.key, done.snapshot)
    assert [stretch.fate for stretch in found.stretches] == ["folded", "kept"]
    assert found.number("folded") == done.messages
    assert found.number("folded") + found.number("kept") == 40
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
    assert found.number("folded") == second.messages


async def test_other_words_are_compared_with_what_the_compression_began_with(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    done = await session.compress()
    edited = await session.edit_summary("In other words.")
    found = await compare(bench, session.key, edited.id)
    assert found.summary_before is None
    assert found.number("folded") == done.messages


async def test_a_message_with_other_content_has_both(bench: Bench) -> None:
    session = await bench.session()
    for n in range(6):
        await session.append(
            user(f"Read it, {n}."),
            assistant("", call(f"c{n}", "read", {"path": f"a{n}.txt"})),
            result(f"c{n}", "\n".join(f"line {n} {i} of the file" for i in range(60))),
            assistant("Done."),
        )
    done = await session.compress(strategy="truncation", keep_tokens=100)
    assert done.edited
    found = await compare(bench, session.key, done.snapshot)
    assert found.number("edited") == done.edited
    pairs = [pair for each in found.stretches if each.fate == "edited" for pair in each.pairs]
    for pair in pairs:
        assert pair.before == pair.original
        assert pair.after is not None
        assert len(text_of(pair.after.parts)) < len(text_of(pair.original.parts))
    assert not found.is_summary_new


async def test_what_was_undone_can_still_be_compared(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    done = await session.compress()
    await session.undo()
    assert (await compare(bench, session.key, done.snapshot)).number("folded") == done.messages


async def test_a_snapshot_that_is_not_there_is_an_error(bench: Bench) -> None:
    session = await bench.session()
    with pytest.raises(NotFoundError, match="no snapshot"):
        await compare(bench, session.key, "nothing")
