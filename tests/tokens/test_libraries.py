"""Exactness: every path gives tiktoken's count, for every text."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.tokens import tokenizers
from enfold.tokens.tokenizers import CountTexts

ENCODINGS = ("o200k_base", "cl100k_base")

# Text, tokens of o200k_base, tokens of cl100k_base: as tiktoken 0.14 counts them.
EXPECTED_COUNTS = [
    ("hello world", 2, 2),
    ("Hello, world!", 4, 4),
    ("The quick brown fox jumps over the lazy dog.", 10, 10),
    ("  leading and trailing  ", 5, 5),
    ("tabs\tand\r\nlines\n\n\n", 5, 5),
    ("don't I'LL we've THEY'RE", 7, 9),
    ("snake_case camelCase HTTPServer", 6, 6),
    ("1234567890 3.14159 0xff", 12, 12),
    ('def f(x: int) -> str:\n    return f"{x!r}"\n', 17, 17),
    ('{"name":"read_file","arguments":{"path":"src/a.py","lines":[1,2,3]}}', 23, 23),
    ("你好\uff0c世界", 3, 6),
    ("これはテストです。", 5, 6),
    ("Привет, мир", 4, 6),
    ("مرحبا بالعالم", 4, 10),
    ("🙂👩\u200d👩\u200d👧\u200d👦🏳️\u200d🌈", 18, 29),
    ("e\u0301te\u0301 été", 5, 5),
    ("naïve café — “quotes”…", 8, 9),
    ("<|endoftext|>", 7, 7),
    ("<|im_start|>user<|im_end|>", 13, 13),
    ("\0", 1, 1),
    ("a\0b", 3, 3),
    ("\ufeffBOM", 3, 3),
    ("=" * 80, 1, 1),
    (" " * 100, 2, 2),
    ("\n" * 100, 7, 4),
    # Assigned in Unicode 17: letters to toktok, not to tiktoken.
    ("\u088f's", 5, 5),
    ("x\U000323b0's", 7, 7),
    ("\U00010940\U00010941's", 10, 10),
    # In the same ranges, but the same to both.
    ("\U0001d518\U0001d52b\U0001d526", 9, 9),
    # Lone surrogates count as U+FFFD, pairs as their character.
    ("a\ud800b", 3, 3),
    ("\udc00", 1, 1),
    ("x\udfff\ud800y", 3, 3),
    ("\ud83d\ude42", 1, 2),
]

A_MILLION = {
    "a run of one letter": ("a" * 1_000_000, 125_000, 125_000),
    "letters without a space": (
        "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=1_000_000)),
        518_726,
        540_230,
    ),
    "spaces": (" " * 1_000_000, 7_813, 7_813),
    "spaces, then a letter": (" " * 1_000_000 + "a", 7_814, 7_814),
    "line ends": ("\n" * 1_000_000, 62_500, 31_250),
    "U+0000": ("\0" * 1_000_000, 500_000, 1_000_000),
    "one Chinese character": ("中" * 1_000_000, 1_000_000, 1_000_000),
}

surrogates = st.characters(categories=["Cs"])
texts = st.text(st.one_of(st.characters(), surrogates), max_size=40)

newer = st.sampled_from([chr(code) for code in (0x88F, 0xC5C, 0x1ACF, 0xA7CE, 0x10940, 0x323B0)])
contexts = st.lists(
    st.one_of(
        newer, st.sampled_from(["a", "B", "1", " ", "\n", ".", "'s", "'LL", "é", "中", "🙂"])
    ),
    max_size=12,
).map("".join)


@pytest.fixture(scope="module", params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def count(encoding: str) -> CountTexts:
    return tokenizers.TiktokenCounter(encoding, fast_after=0)


@pytest.fixture(scope="module")
def count_without_toktok(encoding: str) -> CountTexts:
    """As on a machine for which toktok has no build."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "toktok", None)
        return tokenizers.TiktokenCounter(encoding)


@pytest.fixture(scope="module")
def count_by_reference(encoding: str) -> CountTexts:
    reference: Any = pytest.importorskip("benchmarks.reference")
    if absent := reference.missing():
        pytest.skip(f"the reference can't be loaded, {absent}")
    encode: Callable[[str], list[int]] = reference.encoding(encoding).encode_ordinary
    return lambda texts: [len(encode(text)) for text in texts]


def test_known_counts(count: CountTexts, encoding: str) -> None:
    expected = {
        text: (o200k, cl100k)[ENCODINGS.index(encoding)] for text, o200k, cl100k in EXPECTED_COUNTS
    }
    assert dict(zip(expected, count(list(expected)), strict=True)) == expected


def test_known_counts_where_toktok_has_no_build(
    count_without_toktok: CountTexts, encoding: str
) -> None:
    expected = {
        text: (o200k, cl100k)[ENCODINGS.index(encoding)] for text, o200k, cl100k in EXPECTED_COUNTS
    }
    assert dict(zip(expected, count_without_toktok(list(expected)), strict=True)) == expected


@pytest.mark.parametrize("name", A_MILLION)
def test_a_million_characters_in_one_piece(count: CountTexts, encoding: str, name: str) -> None:
    text, *expected = A_MILLION[name]
    assert count([text]) == [expected[ENCODINGS.index(encoding)]]


@pytest.mark.parametrize("name", A_MILLION)
def test_a_million_characters_with_one_that_takes_the_exact_way(
    count: CountTexts, count_without_toktok: CountTexts, name: str
) -> None:
    text = A_MILLION[name][0] + "\u088f"
    assert count([text]) == count_without_toktok([text])


def test_every_code_point_counts_alike_on_both_ways(
    count: CountTexts, count_without_toktok: CountTexts
) -> None:
    # After a letter or a digit "'s" is a piece of its own, after a symbol it is not: that shows
    # what a library takes the code point for. Planes 4 to 13 are empty in every Unicode.
    codes = [*range(0x40000), *range(0xE0000, 0xE0200)]
    all_texts = [f"{chr(code)}'s" for code in codes]
    differ = [
        hex(code)
        for code, ours, exact in zip(
            codes, count(all_texts), count_without_toktok(all_texts), strict=True
        )
        if ours != exact
    ]
    assert not differ


@given(st.one_of(texts, contexts))
def test_both_ways_count_alike(
    count: CountTexts, count_without_toktok: CountTexts, text: str
) -> None:
    assert count([text]) == count_without_toktok([text])


@given(st.one_of(texts, contexts))
def test_both_ways_count_as_the_reference(
    count: CountTexts, count_by_reference: CountTexts, text: str
) -> None:
    assert count([text]) == count_by_reference([text])


def test_real_conversations_count_as_the_reference(
    count: CountTexts, count_by_reference: CountTexts, data_dir: Path
) -> None:
    real: list[str] = []
    for path in sorted(data_dir.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            real += [text[:20_000] for text in _strings(json.loads(next(lines)))][:300]
    assert count(real) == count_by_reference(real)


@pytest.mark.parametrize("characters", [1_000, 1_500_000], ids="{:,} characters".format)
def test_a_batch_counts_as_its_texts_do(count: CountTexts, characters: int) -> None:
    one = "It was 7 o'clock: naïve 中文 <|endoftext|>\n"
    batch = [f"{number} {one}" for number in range(characters // len(one))]
    batch[3:5] = ["\u088f's", "\ud800"]
    assert count(batch) == [count([text])[0] for text in batch]


def _strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _strings(item)
        case dict():
            for item in value.values():
                yield from _strings(item)
