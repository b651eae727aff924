"""Shortened texts: the kept part, the marker, and a cost below the savings."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.jsontext import loads
from enfold.messages import ToolCall
from enfold.strategies.shortened_text import (
    SUPPRESSED,
    TextLimits,
    map_arguments,
    map_texts,
    suppress,
    truncate,
)
from enfold.tokens import get
from tests.strategies.conversations import texts

O200K = get("o200k_base")
LOG = "\n".join(f"line {n} says something of its own" for n in range(1, 901))


def test_the_first_lines_stay_and_the_marker_says_how_many_are_gone() -> None:
    short = truncate(LOG, TextLimits(lines=88), O200K)
    assert short.startswith("line 1 says something of its own\nline 2 ")
    assert short.endswith("line 88 says something of its own\n⟨ ... truncated, 812 of 900 lines ⟩")


def test_beginning_and_end_stay_where_both_are_wanted() -> None:
    short = truncate(LOG, TextLimits(lines=6, head_and_tail=True), O200K).split("\n")
    assert short[:4] == LOG.split("\n")[:4]
    assert short[4] == "⟨ ... truncated, 894 of 900 lines ⟩"
    assert short[5:] == LOG.split("\n")[-2:]


def test_the_first_characters_stay_of_a_long_line() -> None:
    line = "word " * 1_000
    short = truncate(line, TextLimits(lines=10, chars=100), O200K)
    assert short == line[:100].rstrip() + " ⟨ ... truncated, 4900 of 5000 characters ⟩"
    both = truncate(line, TextLimits(chars=90, head_and_tail=True), O200K)
    assert both.startswith(line[:55])
    assert both.endswith(line[-25:])
    assert "⟨ ... truncated, 4910 of 5000 characters ⟩" in both


def test_the_tighter_limit_decides() -> None:
    by_lines = truncate(LOG, TextLimits(lines=2, chars=10_000), O200K)
    by_chars = truncate(LOG, TextLimits(lines=500, chars=50), O200K)
    assert by_lines.count("\n") == 2
    assert by_chars.startswith(LOG[:50])


def test_a_text_is_cut_without_a_marker() -> None:
    assert truncate(LOG, TextLimits(lines=1, with_marker=False), O200K) == LOG.split("\n")[0] + "\n"


@pytest.mark.parametrize("text", ["", "a\nb\nc\n", "one\ntwo\nthree", "x" * 40])
def test_text_within_the_limits_is_the_same_object(text: str) -> None:
    assert truncate(text, TextLimits(lines=3, chars=40), O200K) is text


def test_a_marker_that_would_cost_more_is_not_set() -> None:
    assert truncate("a\nb\nc", TextLimits(lines=1), O200K) == "a\nb\nc"
    assert truncate("=" * 80, TextLimits(chars=4), O200K) == "=" * 80
    assert suppress("yes, it is", O200K) == "yes, it is"
    assert suppress("-" * 64, O200K) == "-" * 64


def test_a_suppressed_text_is_a_marker_and_stays_one() -> None:
    assert suppress(LOG, O200K) == SUPPRESSED
    assert suppress(SUPPRESSED, O200K) is SUPPRESSED


@given(
    texts | st.text(max_size=200),
    st.none() | st.integers(0, 30),
    st.none() | st.integers(0, 2_000),
    st.booleans(),
)
def test_cutting_never_costs_tokens_and_cuts_once(
    text: str, lines: int | None, chars: int | None, both: bool
) -> None:
    limits = TextLimits(lines, chars, head_and_tail=both)
    once = truncate(text, limits, O200K)
    assert O200K.count(once) <= O200K.count(text)
    assert truncate(once, limits, O200K) == once


@given(texts)
def test_suppressing_never_costs_tokens(text: str) -> None:
    assert O200K.count(suppress(text, O200K)) <= O200K.count(text)


def cut(text: str) -> str:
    return text[:3] if len(text) > 5 else text


def test_texts_inside_a_value_are_edited_and_its_shape_stays() -> None:
    value = {"path": "a.py", "edits": [{"old": "long enough", "n": 1}], "flag": None}
    assert map_texts(value, cut) == {
        "path": "a.py",
        "edits": [{"old": "lon", "n": 1}],
        "flag": None,
    }
    assert map_texts(value, lambda text: text) is value


def test_long_arrays_say_how_many_items_are_gone() -> None:
    shown = map_texts(list(range(100)), cut, most_items=3)
    assert shown == [0, 1, 2, "⟨ ... truncated, 97 of 100 items ⟩"]
    for edit in (partial(truncate, limits=TextLimits(chars=9)), suppress):
        assert map_texts(shown, partial(edit, tokenizer=O200K), most_items=3) is shown


@pytest.mark.parametrize("arguments", ['{"path": "a', "", "[1]", '"just a long text here"'])
def test_arguments_that_are_no_object_are_left_alone(arguments: str) -> None:
    assert map_arguments(ToolCall("1", "run", arguments), cut) is None


def test_arguments_stay_text_where_they_were_text() -> None:
    call = ToolCall("1", "write", '{"n": 9007199254740993, "content": "long enough"}')
    shorter = map_arguments(call, cut)
    assert shorter is not None
    assert isinstance(shorter.arguments, str)
    assert loads(shorter.arguments) == {"n": 9007199254740993, "content": "lon"}
