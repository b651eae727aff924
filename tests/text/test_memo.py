"""Findings in a text are remembered, within bounds, and never for another text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from enfold.text import TextMemo


def _recorded(entries: int) -> tuple[list[str], TextMemo[int]]:
    """Return a memo of lengths, and the texts whose length was not remembered."""
    read: list[str] = []

    def length(text: str) -> int:
        read.append(text)
        return len(text)

    return read, TextMemo(length, lambda _: 1, entries)


def test_a_text_is_read_once() -> None:
    read, length = _recorded(100)
    texts = ["", "a", "b" * 65, "c" * 3_000, "\ud800" * 70]
    assert [length(text) for text in texts * 3] == [len(text) for text in texts] * 3
    assert read == texts


def test_values_count_by_their_weight() -> None:
    numbers = TextMemo(int, lambda number: number, entries=100)
    for number in range(1, 2_000):
        assert numbers(str(number)) == number
        assert len(numbers) <= 200


def test_a_text_in_use_is_not_read_again() -> None:
    read, length = _recorded(10)
    in_use = "x" * 3_000
    for number in range(500):
        length(str(number))
        length(in_use)
    assert read.count(in_use) == 1


@given(st.lists(st.text(max_size=3) | st.text(min_size=64, max_size=66), max_size=40))
def test_an_answer_is_never_wrong(texts: list[str]) -> None:
    length = TextMemo(lambda text: (text,), lambda _: 1, entries=3)
    assert [length(text) for text in texts] == [(text,) for text in texts]


def test_the_limit_can_only_be_lowered() -> None:
    length = TextMemo(len, lambda _: 1, entries=100)
    for number in range(50):
        length(str(number))
    length.limit(10)
    for number in range(100, 125):
        length(str(number))
    assert len(length) <= 20
    length.limit(1_000)
    for number in range(200, 225):
        length(str(number))
    assert len(length) <= 20
