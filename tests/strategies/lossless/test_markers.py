"""Markers are short, say where the text is, and cannot be broken out of."""

from typing import Any

import pytest

from enfold.messages import ToolCall
from enfold.strategies.lossless import markers


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
        ({"command": "x" * 90}, f"read {'x' * 22}…"),
        ({"path": f"/{'deep/' * 20}a.py"}, "read …/a.py"),
        ({"path": f"/{'x' * 90}"}, f"read …/{'x' * 28}"),
    ],
    ids=range(13),
)
def test_a_call_is_described_on_one_short_line(arguments: Any, description: str) -> None:
    call = ToolCall("1", "read", arguments)
    assert markers.describe(call) == description
    assert len(description) <= 40


def test_lines_are_named_by_their_numbers() -> None:
    assert markers.numbered_lines(10, 10, 33, "in read a.py") == "⟨ lines 10-42 as in read a.py ⟩"
    assert markers.numbered_lines(10, None, 1, "above") == "⟨ line 10 as above ⟩"
    assert markers.numbered_lines(10, 5, 1, "above") == "⟨ line 10 as 5 above ⟩"
    assert markers.numbered_lines(10, 5, 2, "above") == "⟨ lines 10-11 as 5-6 above ⟩"
    assert markers.lines("+", 5, 2, "in read a.py") == "⟨ +lines 5-6 in read a.py ⟩"
    assert markers.lines("", 5, 1, "in read a.py") == "⟨ line 5 in read a.py ⟩"


def test_lines_without_numbers_are_named_by_how_they_begin() -> None:
    assert markers.bare_lines("", "a\n b", 2, "above", 8) == '⟨ 2 lines from "a b" above ⟩'
    assert markers.bare_lines("-", "⟨ x ⟩", 1, "above", 8) == '⟨ 1 -line from "x" above ⟩'
    long = markers.characters("word " * 50, 250, "in read a.py", 16)
    assert long == '⟨ 250 characters from "word word word w…" in read a.py ⟩'
