"""The words of a message that show what it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.engine.recall import EXCERPT_WORDS, UNSPACED_LENGTH, excerpt, result_excerpt
from enfold.text.questions import Aim, phrases_about


def test_a_short_text_is_shown_whole() -> None:
    assert excerpt("The anchor weighs nine stone.", phrases_about("anchor")) == (
        0,
        "The anchor weighs nine stone.",
    )


def test_an_excerpt_has_words_around_the_find() -> None:
    text = "padding words " * 40 + "the brass sextant lies in the chart room " + "and more " * 40
    start, piece = excerpt(text, phrases_about("Where is the sextant?"))
    assert "sextant" in piece
    assert text[start : start + len(piece)] == piece
    assert piece.split()[0] in text.split()
    assert piece.split()[-1] in text.split()


def test_the_place_with_most_of_the_words_is_shown() -> None:
    text = f"A sextant. {'Other things are said here. ' * 9}The sextant is in the chart room. No."
    assert "chart" in excerpt(text, phrases_about("sextant in the chart room")).text


@pytest.mark.parametrize(
    "wanted",
    ["in the chart room of the old packet boat that nobody had", "notes/keel/plan.txt"],
)
def test_a_quoted_phrase_is_shown_whole(wanted: str) -> None:
    text = f"{'The chart boat has notes on the keel. ' * 20}It is {wanted}, and more. {'So. ' * 20}"
    piece = excerpt(text, phrases_about(f'Where is "{wanted}"?')).text
    assert piece.startswith(f"It is {wanted}")
    assert piece.endswith(".")


def test_without_a_find_the_content_words_are_shown() -> None:
    text = (
        "Yeah. Um, okay. So I mean yeah. The harbour master closed the northern pier at dawn today."
    )
    text = f"{'Yeah. Um, okay. ' * 12}{text} {'So I mean yeah. ' * 12}"
    start, piece = excerpt(text, phrases_about("sextant"))
    assert start > 20
    assert "The harbour master closed the northern pier at dawn today." in piece


def test_faults_that_are_close_together_are_shown_before_a_single_one() -> None:
    faults = "".join(f"Error: mast {number} is missing\n" for number in range(3))
    rest = "".join(f"rope {number} was coiled and stowed away\n" for number in range(60))
    for text in (faults + rest + "Error: no tar\n", "Error: no tar\n" + rest + faults):
        piece = result_excerpt(text, phrases_about("What went wrong?"), Aim.FAULT).text
        assert faults.strip() in piece


@given(st.text(max_size=400), st.text(max_size=30))
def test_an_excerpt_is_a_piece_of_the_text(text: str, question: str) -> None:
    start, piece = excerpt(text, phrases_about(question))
    assert text[start : start + len(piece)] == piece
    assert piece.strip() or not text.strip()


def test_scripts_without_spaces_are_cut_too() -> None:
    text = (
        "我们昨天在会议上讨论了很多事情" * 20
        + "灯塔的灯坏了需要修理"
        + "然后大家继续说别的事情" * 20
    )
    start, piece = excerpt(text, phrases_about("灯塔"))
    assert "灯塔" in piece
    assert len(piece) <= 2 * UNSPACED_LENGTH
    assert text[start : start + len(piece)] == piece


def test_a_very_long_word_is_cut() -> None:
    assert len(excerpt("a" * 50_000, ()).text) <= 10_000


def test_an_excerpt_is_whole_sentences_of_25_words_or_more() -> None:
    sentences = [f"On day {n} the crew painted the hull and mended a sail." for n in range(40)]
    sentences[20] = "The sextant is in the chart room."
    start, piece = excerpt(" ".join(sentences), phrases_about("sextant"))
    assert "The sextant is in the chart room." in piece
    assert start == 0 or " ".join(sentences)[start - 2 : start] == ". "
    assert piece.endswith(".")
    assert EXCERPT_WORDS <= len(piece.split()) <= 2 * EXCERPT_WORDS


def test_the_lines_of_a_listing_that_match_are_shown() -> None:
    lines = [f"src/module_{n}.py: line {n} is covered by a test" for n in range(200)]
    lines[120] = "src/store.py: line 9 raises ValueError: no such column"
    piece = excerpt("\n".join(lines), phrases_about("Which column is missing?")).text
    assert lines[120] in piece.splitlines()
