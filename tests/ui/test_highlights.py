"""Highlights: matches are marked, and no message becomes markup."""

from __future__ import annotations

from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.ui.markdown import find_matches, markup


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("The north quay is north.", "north", ["north", "north"]),
        ("The north quay is north.", '"north quay"', ["north quay"]),
        ("Über die Brücke", "brucke", ["Brücke"]),
        ("call getUserName now", "user", ["getUserName"]),
        ("open foo_bar.py", "foo_bar.py", ["foo_bar.py"]),
        ("港口节日在六月", "港口", ["港口"]),
        ("nothing here", "absent", []),
        ("nothing here", "", []),
        ("a b", "a b", ["a", "b"]),
    ],
)
def test_the_words_of_a_search_are_found(text: str, query: str, marked: list[str]) -> None:
    assert [text[start:end] for start, end in find_matches(text, query)] == marked


def test_markup_is_shown_and_not_done() -> None:
    text = "<b>bold</b> & 'quay'"
    shown = markup(text, find_matches(text, "quay"))
    assert shown == "&lt;b&gt;bold&lt;/b&gt; &amp; &#x27;<mark>quay</mark>&#x27;"


def test_half_a_character_can_be_sent_to_a_browser() -> None:
    markup("broken \ud800 text").encode()


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), st.text())
def test_marking_changes_no_character(text: str, query: str) -> None:
    ranges = find_matches(text, query)
    assert all(start < end for start, end in ranges)
    assert list(ranges) == sorted(ranges)
    plain = markup(text, ranges).replace("<mark>", "").replace("</mark>", "")
    assert unescape(plain) == unescape(markup(text))
