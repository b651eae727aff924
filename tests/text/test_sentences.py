"""Splitting: texts taken apart without losing anything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from enfold.text.sentences import LONG_SENTENCE, TextForm, pieces, sentences


def _texts(line: str) -> list[str]:
    return [piece.text.strip() for piece in sentences(line)]


def test_sentences() -> None:
    line = "It costs 4.80 euros, e.g. for Dr. Smith. Is it new? Yes! (Really.) No. 5 is alive."
    assert _texts(line) == [
        "It costs 4.80 euros, e.g. for Dr. Smith.",
        "Is it new?",
        "Yes!",
        "(Really.)",
        "No. 5 is alive.",
    ]


def test_sentences_of_other_scripts() -> None:
    assert _texts("有停车场\uff01好吗\uff1f") == ["有停车场\uff01", "好吗\uff1f"]
    assert _texts("预算是8万元。必须有停车场。") == ["预算是8万元。", "必须有停车场。"]
    assert _texts("متى نبدأ؟ يوم الأحد.") == ["متى نبدأ؟", "يوم الأحد."]


def test_long_sentences_are_divided_into_clauses() -> None:
    clause = "the pump in the cellar has to be replaced before the winter comes to the valley"
    line = f"{clause}, and {clause}; {clause}."
    assert _texts(line) == [f"{clause},", f"and {clause};", f"{clause}."]
    assert len(line) > LONG_SENTENCE


def test_markdown_is_divided() -> None:
    text = "# Plan\n\n- **First** item\n2. Second item\n\n| a | b |\n```python\nx = 1\n```\nDone."
    assert [(piece.form, piece.text) for piece in pieces(text)] == [
        (TextForm.HEADING, "Plan"),
        (TextForm.SENTENCE, "First item"),
        (TextForm.SENTENCE, "Second item"),
        (TextForm.LISTING, "| a | b |"),
        (TextForm.CODE, "x = 1\n"),
        (TextForm.SENTENCE, "Done."),
    ]


def test_a_fence_that_is_not_closed_holds_the_rest() -> None:
    assert [piece.form for piece in pieces("See:\n```\na\nb")] == [TextForm.SENTENCE, TextForm.CODE]


def test_only_the_first_piece_of_a_line_begins_it() -> None:
    flags = [piece.begins_line for piece in pieces("One. Two.\nThree.")]
    assert flags == [True, False, True]


@given(st.text("ab. !?。\uff0c\uff1b;,—\n", max_size=400))
def test_only_spaces_and_dashes_between_clauses_are_lost(text: str) -> None:
    line = " ".join(text.split())
    kept = "".join(piece.text for piece in sentences(line))
    drop = str.maketrans("", "", " —")
    assert kept.translate(drop) == line.translate(drop)


def test_many_abbreviations_take_linear_time() -> None:
    assert len(sentences("A. " * 50_000)) > 100
