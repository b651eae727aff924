"""Words: the index terms of a text and of a query."""

from __future__ import annotations

import itertools
import sys
from unicodedata import category

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from enfold.text.words import (
    LONGEST_PHRASE,
    LONGEST_TERM,
    MOST_PHRASES,
    Phrase,
    _unicode_word,
    fold,
    parts_of,
    phrases_of,
    storable,
    terms_of,
    texts_of_terms,
)


def terms(text: str) -> list[str]:
    return [term.text for term in terms_of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", ["hello", "world"]),
        ("src/foo_bar.py:12", ["src", "foo", "bar", "py", "12"]),
        ("Café Ünïcode naïve", ["cafe", "unicode", "naive"]),
        ("cafe\u0301", ["cafe"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("\u0130stanbul \u0131s\u0131", ["istanbul", "isi"]),
        ("Đà Nẵng", ["da", "nang"]),
        ("Ελληνικά Йод", ["ελληνικα", "иод"]),
        ("שָׁלוֹם", ["שלום"]),
        ("\uff27\uff30\uff34\uff14 \ufb01ne ½", ["gpt4", "fine", "1", "2"]),
        ("数据库", ["数据", "据库", "库"]),
        ("用GPT4模型", ["用", "gpt4", "模型", "型"]),
        ("が", ["が"]),
        ("ﾃﾞｰﾀ", ["デー", "ータ", "タ"]),
        ("한국어", ["한국", "국어", "어"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("ภาษา", ["ภา", "าษ", "ษา", "า"]),
        ("don't", ["don", "t"]),
        ("🙂 -- !?", []),
        ("", []),
    ],
    ids=repr,
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_terms_have_their_place_in_the_text() -> None:
    text = "Le café: 数据库!"
    assert [text[term.start : term.end] for term in terms_of(text)] == [
        "Le",
        "café",
        "数据",
        "据库",
        "库",
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("getUserName", {"get", "user", "name"}),
        ("HTTPServer", {"http", "server"}),
        ("parseJSON2", {"parse", "json2"}),
        ("plain", set()),
        ("CONSTANT_NAME", set()),
        ("Word", set()),
    ],
)
def test_parts_of_names(name: str, expected: set[str]) -> None:
    assert parts_of(f"call {name}() now") == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("two words", [Phrase(("two",)), Phrase(("words",))]),
        ('"two words"', [Phrase(("two", "words"))]),
        ('one "two words" three', [Phrase(("one",)), Phrase(("two", "words")), Phrase(("three",))]),
        ('"never closed', [Phrase(("never", "closed"))]),
        ("foo_bar.py", [Phrase(("foo", "bar", "py"))]),
        ("same same", [Phrase(("same",))]),
        ("数据库", [Phrase(("数据", "据库"))]),
        ("据库", [Phrase(("据库",))]),
        ("库", [Phrase(("库",), prefix=True)]),
        ("GPT4模", [Phrase(("gpt4", "模"), prefix=True)]),
        ("模型GPT", [Phrase(("模型", "型", "gpt"))]),
        ("NOT a* OR (b^2) {c} : -d", None),
        ('"" "" *', []),
        ("!?\x00\ud800", []),
    ],
    ids=repr,
)
def test_queries_are_data(query: str, expected: list[Phrase] | None) -> None:
    found = phrases_of(query)
    if expected is None:
        assert [phrase.terms for phrase in found] == [
            ("not",), ("a",), ("or",), ("b", "2"), ("c",), ("d",),
        ]  # fmt: skip
    else:
        assert found == expected


def test_a_long_phrase_is_divided_into_overlapping_pieces() -> None:
    words = [f"w{number}" for number in range(100)]
    pieces = phrases_of(f'"{" ".join(words)}"')
    assert all(len(piece.terms) <= LONGEST_PHRASE for piece in pieces)
    for one, other in itertools.pairwise(words):
        assert any(f"{one} {other} " in " ".join(piece.terms) + " " for piece in pieces)


def test_terms_and_phrases_are_bounded() -> None:
    assert terms("x" * 1_000) == ["x" * LONGEST_TERM]
    assert len(phrases_of(" ".join(f"w{number}" for number in range(999)))) == MOST_PHRASES


@pytest.mark.parametrize("length", range(LONGEST_TERM - 2, LONGEST_TERM + 3))
@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("a b ", ""), ("", " c d"), ("a" * 64, "b")]
)
def test_long_words_are_cut_wherever_they_are(length: int, before: str, after: str) -> None:
    text = f"{before} {'x' * length} {after}" * 3
    assert texts_of_terms(text) == terms(text)
    assert f"{'x' * min(length, LONGEST_TERM)}" in texts_of_terms(text)


@given(st.text() | st.text(st.characters(codec="ascii")))
def test_terms_are_the_same_with_and_without_their_places(text: str) -> None:
    assert texts_of_terms(text) == terms(text)


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(st.text())
def test_terms_contain_no_quotes(text: str) -> None:
    for term in terms(text):
        assert term
        assert not set(term) & set("'\"\\ :*&|!()<>\x00")


@given(st.text(min_size=1))
def test_storable_text_is_unchanged(text: str) -> None:
    cleaned = storable(text)
    assert len(cleaned) == len(text)
    assert cleaned.encode()
    if "\x00" not in text and not any("\ud800" <= c <= "\udfff" for c in text):
        assert cleaned == text


@given(st.text(), st.text(min_size=1), st.text())
def test_a_term_is_found_at_its_place(before: str, word: str, after: str) -> None:
    """The terms of a query are, in a row, among those of any text with the same words around."""
    phrases = phrases_of(f'"{word.replace(chr(34), " ")}"')
    assume(phrases)
    phrase = phrases[0]
    found = terms(f"{before} {word} {after}")
    size = len(phrase.terms)
    windows = (tuple(found[at : at + size]) for at in range(len(found)))
    if phrase.prefix:
        *head, last = phrase.terms
        assert any(
            list(w[:-1]) == head and w[-1].startswith(last) for w in windows if len(w) == size
        )
    else:
        assert phrase.terms in windows


def test_every_mark_belongs_to_its_word() -> None:
    marks = [chr(code) for code in range(sys.maxunicode + 1) if category(chr(code))[0] == "M"]
    assert not [mark for mark in marks if not _unicode_word().fullmatch(f"\u0915{mark}")]


@pytest.mark.parametrize("size", [4_095, 4_096, 4_097, 8_192, 10_000])
def test_a_long_run_is_one_word_wherever_a_step_ends(size: int) -> None:
    text = f"{'x' * size}CamelCase é{'ü' * size} 🎉{'🎉' * size}word"
    assert terms(text) == texts_of_terms(text)
    assert terms(text) == ["x" * LONGEST_TERM, f"e{'u' * (LONGEST_TERM - 1)}", "word"]
    assert parts_of(f"{'x ' * size}{'🎉' * size}someName") == {"some", "name"}
