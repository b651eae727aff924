"""The cost of calls, with either way of reporting cached tokens."""

from __future__ import annotations

import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

import enfold
from enfold.errors import InputError
from enfold.llm.costs import (
    UNKNOWN,
    BilledTokens,
    CallCost,
    Prices,
    calculate_api_cost_anthropic,
    calculate_api_cost_openai,
    cost_of,
    find,
    prices,
)

SONNET = Prices(3.0, 15.0, 3.75, 0.3)
MODELS = [
    ("anthropic", "claude-sonnet-4-5-20250929"),
    ("anthropic", "claude-opus-4-1"),
    ("openai", "gpt-4o-mini"),
    ("openai", "gpt-5"),
    ("google", "gemini-2.5-pro"),
    ("bedrock", "anthropic.claude-3-5-sonnet-20241022-v2:0"),
    ("azure", "gpt-4o"),
    ("openrouter", "anthropic/claude-sonnet-4.5"),
]
tokens = st.integers(0, 2_000_000)


def test_anthropic_reports_cached_tokens_separately_from_the_input() -> None:
    cost = calculate_api_cost_anthropic(SONNET, 1_000, 500, 2_000, 3_000)
    assert cost == pytest.approx(0.003 + 0.0075 + 0.0075 + 0.0009)


def test_openai_reports_cached_tokens_within_the_input() -> None:
    cost = calculate_api_cost_openai(SONNET, 6_000, 500, 2_000, 3_000)
    assert cost == calculate_api_cost_anthropic(SONNET, 1_000, 500, 2_000, 3_000)


def test_more_cached_than_sent_is_no_refund() -> None:
    assert calculate_api_cost_openai(SONNET, 10, 0, 20, 30) == pytest.approx(
        (20 * 3.75 + 30 * 0.3) / 1e6
    )


def test_without_cached_tokens_both_are_the_same() -> None:
    assert calculate_api_cost_openai(SONNET, 100, 10) == calculate_api_cost_anthropic(
        SONNET, 100, 10
    )
    assert calculate_api_cost_openai(SONNET, 0, 0) == 0


def test_a_models_description_will_do_in_place_of_prices() -> None:
    model = {"inputPrice": 3.0, "outputPrice": 15.0, "contextWindow": 200_000}
    assert calculate_api_cost_anthropic(model, 1_000_000, 0) == 3.0
    assert enfold.calculate_api_cost_openai is calculate_api_cost_openai
    assert list(inspect.signature(calculate_api_cost_openai).parameters)[1:] == [
        "input_tokens",
        "output_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
    ]


def test_unknown_is_not_nothing() -> None:
    assert calculate_api_cost_anthropic(None, 10, 0) is None
    assert calculate_api_cost_openai({}, 10, 0) is None
    assert calculate_api_cost_openai({"inputPrice": 3.0}, 10, 1) is None
    assert calculate_api_cost_openai({"inputPrice": 3.0}, 10, 0) is not None
    assert calculate_api_cost_openai(None, 0, 0) == 0
    assert cost_of(None, BilledTokens(1, 1, 1, 1)) == UNKNOWN
    assert (CallCost(1.0) + UNKNOWN).total is None


def test_cached_tokens_without_a_price_of_their_own_cost_what_input_does() -> None:
    plain = Prices(2.0, 8.0)
    assert cost_of(plain, BilledTokens(0, 0, 500_000, 500_000)) == CallCost(0, 0, 1.0, 1.0)


def test_the_detail_adds_up() -> None:
    detail = cost_of(SONNET, BilledTokens.reported(6_000, 500, 2_000, 3_000, includes_cached=True))
    assert detail.parts == pytest.approx((0.003, 0.0075, 0.0075, 0.0009))
    assert detail.as_json()["total"] == detail.total == pytest.approx(0.0189)
    assert (detail + detail).total == pytest.approx(2 * 0.0189)


def test_fewer_than_no_tokens_are_refused() -> None:
    with pytest.raises(InputError, match="-1 output tokens"):
        BilledTokens(1, -1)


@given(st.sampled_from(MODELS), tokens, tokens, tokens, tokens)
def test_costs_agree_with_the_price_library(
    model: tuple[str, str], plain: int, output: int, writes: int, reads: int
) -> None:
    from genai_prices.types import Provider, Usage

    info, model_prices = find(*model), prices(*model)
    assert info is not None
    assert model_prices is not None
    usage = Usage(
        input_tokens=plain + writes + reads,
        output_tokens=output,
        cache_write_tokens=writes,
        cache_read_tokens=reads,
    )
    theirs = info.calc_price(usage, Provider("any", "Any", "any")).total_price
    ours = calculate_api_cost_anthropic(model_prices, plain, output, writes, reads)
    assert ours == pytest.approx(float(theirs), rel=1e-9, abs=1e-12)
    included = calculate_api_cost_openai(
        model_prices, plain + writes + reads, output, writes, reads
    )
    assert included == ours
