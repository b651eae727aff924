"""Markers are short, say where the text is, and cannot be broken out of."""

from typing import Any

import pytest

from enfold.messages import ToolCall
from enfold.strategies.lossless import texts


@pytest.mark.parametrize(
    ("arguments", "description"),
    [
        ({"path": "a.py"}, "read a.py"),
        ({"limit": 5, "file_path": "a.py", "query": "x"}, "read a.py"),
        ({"command": "git status\n--short"}, "read git status --short"),
        ({"unheard_of": "this"}, "read this"),
        ({"n": 1}, "read"),
        ({}, "read"),
        ('{"path": "a.py"}', "read a.py"),
        ("broken {", "read broken {"),
        ("[1]", "read [1]"),
        ({"path": "⟨ a ⟩.py"}, "read a .py"),
        ({"command": "x" * 90}, f"read {'x' * 42}…"),
        ({"path": f"/{'deep/' * 20}a.py"}, "read …/deep/deep/deep/deep/deep/deep/deep/a.py"),
        ({"path": f"/{'x' * 90}"}, f"read …/{'x' * 41}"),
    ],
    ids=range(13),
)
def test_a_call_is_described_on_one_short_line(arguments: Any, description: str) -> None:
    call = ToolCall("1", "read", arguments)
    assert texts.describe(call) == description
    assert len(description) <= 48


def test_a_result_without_a_call_has_a_name_too() -> None:
    assert texts.describe(None) == "its result"


def test_lines_are_named_by_their_numbers() -> None:
    assert texts.numbered_lines(10, 10, 33, "in message #7") == "⟨ lines 10-42 as in message #7 ⟩"
    assert texts.numbered_lines(10, None, 1, "above") == "⟨ line 10 as above ⟩"
    assert texts.numbered_lines(10, 5, 1, "above") == "⟨ line 10 as 5 above ⟩"
    assert texts.numbered_lines(10, 5, 2, "above") == "⟨ lines 10-11 as 5-6 above ⟩"
    assert texts.lines("+", 5, 2, "in message #7") == "⟨ +lines 5-6 in message #7 ⟩"
    assert texts.lines("", 5, 1, "in message #7") == "⟨ line 5 in message #7 ⟩"


def test_lines_without_numbers_are_named_by_how_they_begin() -> None:
    assert texts.bare_lines("", "a\n b", 2, "above") == '⟨ 2 lines from "a b" as above ⟩'
    assert texts.bare_lines("-", "⟨ x ⟩", 1, "above") == '⟨ 1 -line from "x" as above ⟩'
    long = texts.characters("word " * 50, 250, "in message #7")
    assert long == '⟨ 250 characters from "word word word word…" as in message #7 ⟩'
