"""Line numbers, in all the styles in which tools write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.encodings import (
    bodies,
    decode_line_numbers,
    encode_line_numbers,
    is_numbered,
    prefix,
    runs,
)

LINES = ["import os", "", "    indented", "\ttabbed", "1: not a number of ours"]


def numbered(lines: list[str], first: int, width: int, separator: str) -> list[str]:
    return [prefix(n, width, separator) + line for n, line in enumerate(lines, first)]


@pytest.mark.parametrize("separator", ["→", "\t", ":", "|", "-"])
@pytest.mark.parametrize("width", [0, 6])
@pytest.mark.parametrize("first", [1, 8, 98, 999_997])
def test_a_run_is_recognised_in_every_style(separator: str, width: int, first: int) -> None:
    lines = ["Some heading", *numbered(LINES, first, width, separator), "and an end"]
    (run,) = runs(lines)
    assert (run.start, run.stop, run.first) == (1, 6, first)
    assert (run.separator, bodies(lines, run)) == (separator, LINES)
    assert is_numbered("\n".join(lines))


@given(
    st.lists(st.text(max_size=10).filter(lambda line: "\n" not in line), min_size=2, max_size=8),
    st.integers(0, 100_000),
    st.sampled_from([0, 2, 4, 6]),
    st.sampled_from("→\t:|-"),
)
def test_bodies_are_the_lines_that_were_numbered(
    lines: list[str], first: int, width: int, separator: str
) -> None:
    whole = numbered(lines, first, width, separator)
    (run,) = runs(whole)
    assert bodies(whole, run) == lines
    assert (run.start, run.stop) == (0, len(lines))


@given(
    st.lists(st.sampled_from(["", "x = 1", "    y\t", "7", "-"]), min_size=11, max_size=40),
    st.integers(0, 100_000),
    st.sampled_from([(6, "→"), (6, "\t"), (0, "\t")]),
    st.sampled_from([[], ["", "an end"]]),
)
def test_every_fifth_number_of_a_long_run_tells_the_others(
    lines: list[str], first: int, style: tuple[int, str], after: list[str]
) -> None:
    text = "\n".join([*numbered(lines, first, *style), *after])
    found = encode_line_numbers(text)
    assert found is not None
    shown = found[0].split("\n")
    assert [line.split("\t")[0] for line in shown[: len(lines) : 5]] == [
        str(number) for number in range(first, first + len(lines), 5)
    ]
    assert shown[1:5] == lines[1:5]
    assert decode_line_numbers(*found) == text
    (run,) = runs(shown)
    assert (run.start, run.first, run.every) == (0, first, 5)
    assert bodies(shown, run) == lines[: run.stop]
    assert len(lines) - run.stop < run.every
    assert encode_line_numbers(found[0]) is None


def test_lines_that_begin_with_numbers_of_their_own_keep_all_numbers() -> None:
    text = "\n".join(numbered([f"{n}\tvalue" for n in range(30)], 1, 6, "\t"))
    found = encode_line_numbers(text)
    assert found is not None
    assert found[0].split("\n")[3] == "4\t3\tvalue"


@pytest.mark.parametrize(
    "lines",
    [
        ["12:30 up", "12:31 down"],
        ["2024-01-01 a", "2024-01-02 b"],
        ["007:a", "008:b"],
        ["1:a", "3:c"],
        ["5\tone line alone"],
        ["no numbers", "at all"],
        ["1234567890:too long", "1234567891:too long"],
        [""],
    ],
    ids=repr,
)
def test_numbers_that_count_no_lines_are_left_alone(lines: list[str]) -> None:
    assert list(runs(lines)) == []


def test_a_line_with_an_arrow_is_a_run() -> None:
    (run,) = runs(["     7→alone"])
    assert (run.first, run.width) == (7, 6)


def test_runs_end_where_the_count_or_the_style_does() -> None:
    lines = ["1:a", "2:b", "7:c", "8:d", "9|e", "10|f"]
    assert [(run.start, run.stop, run.separator) for run in runs(lines)] == [
        (0, 2, ":"),
        (2, 4, ":"),
        (4, 6, "|"),
    ]


def test_numbers_are_shown_as_cat_writes_them_without_padding() -> None:
    text = "     9→def f():\n    10→\treturn 1\n    11→\n\nend"
    found = encode_line_numbers(text)
    assert found is not None
    assert found[0] == "9\tdef f():\n10\t\treturn 1\n11\t\n\nend"
    assert decode_line_numbers(*found) == text


def test_padding_goes_and_other_signs_stay() -> None:
    found = encode_line_numbers("   1: a\n   2: b")
    assert found is not None
    assert found[0] == "1: a\n2: b"
    assert encode_line_numbers("1:a\n2:b") is None
    assert encode_line_numbers("1\ta\n2\tb") is None
