from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from sys import getrefcount

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
    assert memo.get("999") == 999


def test_a_server_keeps_fewer_texts() -> None:
    memo = Memo(entries=100)
    memo.keep({str(number): 1 for number in range(90)})
    memo.limit(10)
    memo.keep({f"new {number}": 1 for number in range(25)})
    assert len(memo) <= 20
    memo.limit(1_000)
    memo.keep({f"newer {number}": 1 for number in range(25)})
    assert len(memo) <= 20


def test_texts_are_not_held() -> None:
    memo = Memo()
    text = f"{'x' * 1_000}{id(memo)}"
    before = getrefcount(text)
    memo.keep({text: 7})
    assert getrefcount(text) == before
    assert memo.get(text) == 7


def test_counts_that_were_dropped_are_found() -> None:
    memo = Memo(entries=10)
    for number in range(100):
        memo.keep({f"text {number}": number})
        assert len(memo) <= 20
    found = memo.find([f"text {number}" for number in range(100)])
    assert all(count in {number, UNKNOWN} for number, count in enumerate(found))
    assert sum(count != UNKNOWN for count in found) > 90


def test_the_table_is_bounded_and_never_wrong() -> None:
    table = _CountTable(slots=16)
    for number in range(1, 500):
        table.keep(hash(f"text {number}"), number)
        found = [table.find(hash(f"text {each}")) for each in range(1, number + 1)]
        assert found[-1] == number
        assert all(count in {each, UNKNOWN} for each, count in enumerate(found, 1))
        assert sum(count != UNKNOWN for count in found) <= 16


def test_a_memo_without_entries_keeps_nothing() -> None:
    memo = Memo(entries=0)
    memo.keep({"a": 1})
    memo.keep_one("b", 2)
    assert memo.find(["a", "b"]) == [UNKNOWN, UNKNOWN]


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
