"""Markers: each opens to exactly the text that it stands for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.engine import Engine
from enfold.engine.changes import read_comparison
from enfold.messages import text_of
from enfold.ui.message_text import MARKER, MarkedText, align, original_of, split_at_markers
from tests.ui.talks import in_engine, read_files


def restored(found: tuple[MarkedText, ...]) -> str:
    return "".join(piece.text if piece.original is None else piece.original for piece in found)


def test_unshortened_text_is_one_piece() -> None:
    assert align("As it was.", "As it was.") == (MarkedText("As it was."),)


def test_a_marker_stands_for_what_is_between_the_texts_around_it() -> None:
    shown = "one\ntwo\n⟨ ... truncated, 2 of 5 lines ⟩\nfive"
    assert align(shown, "one\ntwo\nthree\nfour\nfive") == (
        MarkedText("one\ntwo\n"),
        MarkedText("⟨ ... truncated, 2 of 5 lines ⟩", "three\nfour"),
        MarkedText("\nfive"),
    )


def test_a_marker_alone_stands_for_everything() -> None:
    marker = "⟨ Content suppressed ⟩"
    assert align(marker, "All of it.") == (MarkedText(marker, "All of it."),)


def test_two_markers_in_a_row_each_take_as_many_lines_as_they_say() -> None:
    first, second = "⟨ lines 1-2 as in message #3 ⟩", "⟨ lines 3-4 as in message #5 ⟩"
    found = align(f"{first}\n{second}\nend", "a\nb\nc\nd\nend")
    assert found == (
        MarkedText(first, "a\nb"),
        MarkedText("\n"),
        MarkedText(second, "c\nd"),
        MarkedText("\nend"),
    )


def test_characters_are_counted_too() -> None:
    marker = '⟨ 4 characters from "cd" as in message #1 ⟩'
    other = '⟨ 2 characters from "hi" as in message #1 ⟩'
    found = align(f"ab{marker}g{other}j", "abcdefghij")
    assert [piece.original for piece in found] == [None, "cdef", None, "hi", None]


def test_brackets_in_a_message_are_no_marker() -> None:
    original = "He wrote ⟨ so ⟩ and then a lot more"
    shown = "He wrote ⟨ so ⟩ and ⟨ ... truncated, 16 of 35 characters ⟩"
    found = align(shown, original)
    assert found[0] == MarkedText("He wrote ⟨ so ⟩ and ")
    assert found[1].original == "then a lot more"


@pytest.mark.parametrize(
    "shown",
    ["reworded altogether", "other ⟨ lines 1-2 as in message #3 ⟩ text", "⟨ a ⟩not there⟨ b ⟩"],
)
def test_text_that_cannot_be_aligned_stands_for_the_whole(shown: str) -> None:
    assert align(shown, "What was said.") == (MarkedText(shown, "What was said."),)


@given(st.lists(st.text("ab\n ", max_size=12), min_size=2, max_size=6))
def test_originals_in_their_places_restore_the_message(texts: list[str]) -> None:
    """For any texts, nothing is lost and nothing is made up."""
    original = "".join(texts)
    shown = "".join(
        text if index % 2 == 0 else f"⟨ {len(text)} characters from x as in message #1 ⟩"
        for index, text in enumerate(texts)
    )
    assert restored(align(shown, original)) == original


def test_every_marker_is_opened_by_its_number() -> None:
    shown = "He wrote ⟨ so ⟩ and ⟨ ... truncated, 16 of 35 characters ⟩"
    original = "He wrote ⟨ so ⟩ and then a lot more"
    assert split_at_markers(shown)[1::2] == ("⟨ so ⟩", "⟨ ... truncated, 16 of 35 characters ⟩")
    assert original_of(shown, original, 0) == "⟨ so ⟩"
    assert original_of(shown, original, 1) == "then a lot more"
    assert original_of("⟨ a ⟩ reworded ⟨ b ⟩", original, 1) == original


@pytest.mark.parametrize("strategy", ["lossless", "truncation"])
def test_every_marker_of_a_strategy_opens(
    strategy: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def shortened(engine: Engine) -> list[tuple[str, str]]:
        session = await engine.session("files")
        await read_files(session)
        done = await session.compress(strategy=strategy, keep_tokens=100)
        assert done.snapshot is not None
        found = await engine.store.read(read_comparison, session.key, done.snapshot)
        return [
            (text_of(pair.after.parts), text_of(pair.original.parts))
            for stretch in found.stretches
            for pair in stretch.pairs
            if pair.after is not None and pair.change == "edited"
        ]

    pairs = in_engine(tmp_path_factory.mktemp("markers") / "chats.db", shortened)
    assert pairs
    for shown, original in pairs:
        assert MARKER.search(shown)
        assert restored(align(shown, original)).split() == original.split()
