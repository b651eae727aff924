"""How an overflow is worded."""

from __future__ import annotations

import pytest

from enfold.wire import says_overflow


@pytest.mark.parametrize(
    "said",
    [
        "context_length_exceeded",
        "This model's maximum context length is 8192 tokens.",
        "prompt is too long: 201 tokens > 200 maximum",
        "The input token count (9) exceeds the maximum number of tokens allowed (8)",
        "the request exceeds the available context size",
        "Input is too long for requested model.",
        "request_too_large",
    ],
)
def test_providers_word_it_in_many_ways(said: str) -> None:
    assert says_overflow(said)


@pytest.mark.parametrize("said", ["unknown field", "max_tokens is too large", ""])
def test_other_refusals_are_not_taken_for_one(said: str) -> None:
    assert not says_overflow(said)
