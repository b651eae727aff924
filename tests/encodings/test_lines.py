"""Repeated lines, blanks at the end of lines, and tags around an output."""

import pytest

from enfold.encodings import (
    decode_blanks,
    decode_runs,
    decode_tags,
    encode_blanks,
    encode_runs,
    encode_tags,
)

WAITING = "2024-01-01 waiting for the server to answer"


def test_a_repeated_line_is_shown_once() -> None:
    text = "\n".join(["start", *[WAITING] * 40, "", "end"])
    found = encode_runs(text)
    assert found is not None
    assert found[0] == f"start\n{WAITING}\n⟨ the line above 39 more times ⟩\n\nend"
    assert decode_runs(*found) == text


def test_a_text_that_holds_the_marker_itself_comes_back() -> None:
    marker = "⟨ the line above 39 more times ⟩"
    text = "\n".join([*[WAITING] * 40, marker, marker])
    found = encode_runs(text)
    assert found is not None
    assert decode_runs(*found) == text


def test_few_short_or_blank_lines_stay() -> None:
    assert encode_runs("a\na\na\nb") is None
    assert encode_runs("\n" * 200) is None
    assert encode_runs(f"{WAITING}\n{WAITING}") is None


def test_blanks_at_the_end_of_lines_go_and_come_back() -> None:
    text = "one  \n\ttwo\t\nthree\n   \nfour "
    found = encode_blanks(text)
    assert found is not None
    assert found[0] == "one\n\ttwo\nthree\n\nfour"
    assert decode_blanks(*found) == text
    assert encode_blanks(found[0]) is None


def test_tags_around_an_output_become_labels() -> None:
    text = "<returncode>0</returncode>\n<output>\none\n</b>\ntwo\n</output>"
    found = encode_tags(text)
    assert found is not None
    assert found[0] == "returncode=0\none\n</b>\ntwo"
    assert decode_tags(*found) == text
    old = "returncode: 0\noutput:\none\n</b>\ntwo"
    assert decode_tags(old, [1, True]) == text  # as 0.1 wrote it


@pytest.mark.parametrize(
    "text",
    [
        "<status>ok</status>\n\n<id>a: b</id>\nrest",
        "<output>\n\n</output>",
        "<a></a>\n<b>\n\n</b>",
        "<x-y>1</x-y>",
    ],
)
def test_tags_come_back(text: str) -> None:
    found = encode_tags(text)
    assert found is not None
    assert decode_tags(*found) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "<html>\n<body>",
        "<a>1</b>",
        "<output>\nnot closed",
        "<o>\n</o>",
        "<a href='x'>1</a>",
    ],
)
def test_other_tags_stay(text: str) -> None:
    assert encode_tags(text) is None
