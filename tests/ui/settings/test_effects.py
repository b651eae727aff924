"""What an operation makes of the example."""

from __future__ import annotations

from typing import Any

import pytest

from enfold.ui.settings.strategy import EXAMPLE, effect


@pytest.mark.parametrize(
    ("operation", "lines", "words"),
    [
        ({"operation": "keep"}, 40, "step 40"),
        ({"operation": "suppress"}, 1, "suppressed"),
        ({"operation": "truncate", "params": {"truncate": {"maxLines": 3}}}, 4, "37 of 40 lines"),
        ({"operation": "summarize", "params": {"summarize": {"maxTokens": 90}}}, 2, "90 tokens"),
    ],
    ids=["keep", "suppress", "truncate", "summarize"],
)
def test_what_becomes_of_the_example(operation: dict[str, Any], lines: int, words: str) -> None:
    shown = effect(operation)
    assert shown is not None
    assert len(shown.splitlines()) == lines
    assert words in shown


def test_nothing_is_shown_of_what_cannot_be_used() -> None:
    assert effect({"operation": "truncate", "params": {"truncate": {"maxLines": -1}}}) is None


def test_the_example_is_long() -> None:
    assert len(EXAMPLE.splitlines()) == 40
