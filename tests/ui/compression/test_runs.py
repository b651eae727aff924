"""What one compression by hand is told."""

from __future__ import annotations

import pytest

from enfold.ui.compression.preview import AS_SET, RunOptions


def test_what_is_not_chosen_is_as_it_is_set() -> None:
    assert AS_SET.arguments() == {}
    assert AS_SET.fault == ""


@pytest.mark.parametrize(
    ("run", "arguments"),
    [
        (RunOptions("tokens", 500), {"keep_tokens": 500}),
        (RunOptions("messages", 0), {"keep_messages": 0}),
        (RunOptions(strategy="smart", style="concise"), {"strategy": "smart", "style": "concise"}),
        (RunOptions(prompt="Only numbers."), {"prompt": "Only numbers."}),
    ],
    ids=["tokens", "messages", "strategy", "prompt"],
)
def test_what_is_chosen_is_asked_for(run: RunOptions, arguments: dict[str, object]) -> None:
    assert run.arguments() == arguments


@pytest.mark.parametrize("amount", [None, -1])
def test_how_much_stays_must_be_a_number(amount: int | None) -> None:
    assert "0 or more" in RunOptions("tokens", amount).fault
