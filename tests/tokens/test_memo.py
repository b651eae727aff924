from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from sys import getsizeof

from hypothesis import given
from hypothesis import strategies as st

from enfold.tokens.tokenizers import UNKNOWN, Memo, _CountTable


def test_a_memo_finds_only_kept_texts() -> None:
    memo = Memo()
    memo.keep({"a": 1, "": 0})
    assert memo.find(["a", "b", "", "a"]) == [1, UNKNOWN, 0, 1]


def test_entries_are_bounded() -> None:
    memo = Memo(entries=10)
    for number in range(1_000):
        memo.keep({str(number): number})
        assert len(memo) <= 20
    assert memo.find(["999", "0"]) == [999, UNKNOWN]


def test_bytes_are_bounded() -> None:
    text = "x" * 1_000
    memo = Memo(size=10 * getsizeof(text + "00"))
    for number in range(10, 100):
        memo.keep({f"{text}{number}": number})
        assert len(memo) <= 20
    # Those that were dropped are known by their keys.
    assert memo.find([f"{text}99", f"{text}10", f"{text}9"]) == [99, 10, UNKNOWN]


def test_the_table_of_keys_is_bounded_and_never_wrong() -> None:
    table = _CountTable(slots=16)
    long = "x" * 64
    for number in range(1, 500):
        table.keep(f"{long}{number}", number)
        found = [table.find(f"{long}{each}") for each in range(1, number + 1)]
        assert found[-1] == number
        assert all(count in {each, UNKNOWN} for each, count in enumerate(found, 1))
        assert sum(count != UNKNOWN for count in found) <= 16


def test_wide_characters_take_more_room() -> None:
    narrow, wide = Memo(size=10_000), Memo(size=10_000)
    narrow.keep({"x" * 1_000 + str(number): 1 for number in range(100)})
    wide.keep({"🙂" * 1_000 + str(number): 1 for number in range(100)})
    assert len(wide) < len(narrow)


def test_a_text_larger_than_a_generation_is_not_kept() -> None:
    memo = Memo(size=1_000)
    memo.keep({"small": 1, "x" * 1_000: 2})
    assert memo.find(["small", "x" * 1_000]) == [1, UNKNOWN]


def test_a_text_in_use_outlives_those_that_are_not() -> None:
    memo = Memo(entries=10)
    memo.keep({"in use": 7})
    for number in range(1_000):
        memo.keep({str(number): number})
        assert memo.find(["in use"]) == [7]


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers(0, 9), max_size=5), max_size=30))
def test_an_answer_is_never_wrong(batches: list[dict[str, int]]) -> None:
    memo = Memo(entries=4)
    first: dict[str, int] = {}
    for batch in batches:
        first = {**batch, **first}
        memo.keep({text: first[text] for text in batch})
        for text, found in zip(first, memo.find(list(first)), strict=True):
            assert found in {first[text], UNKNOWN}


def test_threads_may_share_it() -> None:
    memo = Memo(entries=50)

    def use(start: int) -> None:
        for number in range(start, start + 2_000):
            memo.keep({str(number): number})
            texts = [str(number), str(number - 30), str(number - 100)]
            for text, found in zip(texts, memo.find(texts), strict=True):
                assert found in {int(text), UNKNOWN}

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(0, 4_000, 500)))
    assert len(memo) <= 100
