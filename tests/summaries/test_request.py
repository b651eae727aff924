"""The summarizer port: limits and goals of a request."""

from __future__ import annotations

import pytest

from enfold.errors import ConfigError
from enfold.summaries import SummaryRequest


def test_the_target_is_the_limit_and_falls_with_every_attempt() -> None:
    targets = [SummaryRequest((), max_tokens=1_000, tightness=n).target for n in range(4)]
    assert targets == [1_000, 750, 562, 421]


def test_the_target_is_at_least_one_token() -> None:
    assert SummaryRequest((), max_tokens=1, tightness=9).target == 1


@pytest.mark.parametrize(
    ("options", "named"),
    [({"max_tokens": 0}, "max_tokens is 0"), ({"tightness": -1}, "tightness is -1")],
    ids=["no tokens", "negative tightness"],
)
def test_impossible_requests_are_refused(options: dict[str, int], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        SummaryRequest((), **options)  # type: ignore[arg-type]  # one of several fields by name
