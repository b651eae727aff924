"""The options of one compression."""

from __future__ import annotations

from typing import Any

import pytest

from enfold.ui.compression.preview import find_faults


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"keep_tokens": 500},
        {"keep_messages": 0},
        {"strategy": "smart", "style": "concise", "prompt": "Only numbers."},
    ],
    ids=["nothing", "tokens", "messages", "strategy"],
)
def test_valid_options_have_no_faults(options: dict[str, Any]) -> None:
    assert find_faults(options) == ()


@pytest.mark.parametrize(
    ("options", "path", "words"),
    [
        ({"keep_tokens": -1}, "keep_tokens", "a whole number, 0 or more"),
        ({"keep_messages": "many"}, "keep_messages", "a whole number, 0 or more"),
        ({"keep_tokens": 0, "keep_messages": 0}, "keep_messages", "not both"),
        ({"style": "florid"}, "style", "one of"),
    ],
    ids=["negative", "text", "both", "style"],
)
def test_faults_name_the_field(options: dict[str, Any], path: str, words: str) -> None:
    (fault,) = find_faults(options)
    assert fault.path == path
    assert words in fault.reason
