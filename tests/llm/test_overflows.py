"""How providers word that a request is too long or too large, and the limits they name."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from enfold.wire import overflow_limit, says_overflow

WORDINGS = tomllib.loads(Path(__file__).with_name("overflows.toml").read_text())["overflow"]


def test_the_table_has_at_least_forty_wordings() -> None:
    assert len({each["wording"] for each in WORDINGS}) >= 40


@pytest.mark.parametrize("case", WORDINGS, ids=lambda case: case["wording"][:40])
def test_a_wording_is_recognised_with_the_limit_that_it_names(case: dict[str, Any]) -> None:
    assert says_overflow(case["wording"])
    assert overflow_limit(case["wording"]) == case.get("limit")


@pytest.mark.parametrize(
    "wording",
    [
        "unknown field",
        "max_tokens is too large",
        "max_tokens is too large: 100000. This model supports at most 4096 completion tokens.",
        "You exceeded your current quota, please check your plan and billing details.",
        "Rate limit exceeded: too many requests",
        "Your API token has exceeded its rate limit",
        "Invalid API key",
        "messages: at least one message is required",
        "tools.0.name: string does not match pattern",
        "The model `gpt-9` does not exist",
        "temperature: must be less than 2",
        "thinking.budget_tokens: must be less than max_tokens",
        "tool_use ids were found without tool_result blocks immediately after",
        "",
    ],
)
def test_other_refusals_are_not_taken_for_one(wording: str) -> None:
    assert not says_overflow(wording)
    assert overflow_limit(wording) is None
