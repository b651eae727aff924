"""Prices of models."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from enfold.errors import ConfigError
from enfold.llm.costs import BilledTokens, Longer, Prices, cost_of, prices

NOW = datetime(2026, 1, 15, 12, tzinfo=UTC)


def test_the_library_knows_what_models_cost() -> None:
    assert prices("openai", "gpt-4o-mini", at=NOW) == Prices(0.15, 0.6, None, 0.075)
    assert prices("anthropic", "claude-opus-4-1", at=NOW) == Prices(15, 75, 18.75, 1.5)


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        ("bedrock", "anthropic.claude-3-5-sonnet-20241022-v2:0"),
        ("vertex", "gemini-2.5-pro"),
        ("gemini", "gemini-2.5-flash"),
        ("google", "claude-sonnet-4-5@20250929"),
        ("azure", "gpt-4o"),
        ("openrouter", "anthropic/claude-sonnet-4.5"),
    ],
)
def test_every_provider_of_a_profile_has_prices(provider: str, model: str) -> None:
    found = prices(provider, model)
    assert found is not None
    assert found.input is not None
    assert found.output is not None


@pytest.mark.parametrize(("provider", "model"), [("acme", "gpt-4o"), ("openai", "unheard-of")])
def test_unknown_prices_are_unknown_and_not_zero(provider: str, model: str) -> None:
    assert prices(provider, model) is None
    assert prices(provider, model, {}) is None


def test_a_longer_request_has_its_own_prices() -> None:
    found = prices("google", "gemini-2.5-pro", at=NOW)
    assert found is not None
    assert (found.at(200_000).input, found.at(200_001).input) == (1.25, 2.5)
    assert (found.at(200_000).output, found.at(200_001).output) == (10, 15)
    assert found.at(0) == found


def test_a_price_may_depend_on_the_time_of_day() -> None:
    by_day = prices("deepseek", "deepseek-chat", at=NOW)
    by_night = prices("deepseek", "deepseek-chat", at=NOW.replace(hour=20))
    assert by_day is not None
    assert by_night is not None
    assert (by_day.input or 0) > (by_night.input or 0) > 0


def test_prices_of_a_profile_win() -> None:
    found = prices("openai", "gpt-4o-mini", {"inputPrice": 1.0, "cache_writes": 0}, at=NOW)
    assert found == Prices(1.0, 0.6, 0, 0.075)
    assert prices("acme", "unheard-of", {"inputPrice": 0.2}) == Prices(0.2)
    assert prices("acme", "unheard-of", Prices(0, 0)) == Prices(0, 0)


def test_a_cached_token_never_costs_more_than_the_profiles_lower_input() -> None:
    cheap = prices("openai", "gpt-4o", {"inputPrice": 1.0}, at=NOW)
    assert cheap == Prices(1.0, 10)
    assert cost_of(cheap, BilledTokens(cache_reads=1_000_000)).total == 1.0
    listed = prices("anthropic", "claude-sonnet-4-5", {"inputPrice": 3.0}, at=NOW)
    assert listed is not None
    assert (listed.cache_writes, listed.cache_reads) == (3.75, 0.3)
    reduced = prices("anthropic", "claude-sonnet-4-5", {"inputPrice": 1.0}, at=NOW)
    assert reduced is not None
    assert (reduced.cache_writes, reduced.cache_reads) == (None, 0.3)


def test_a_profiles_price_holds_at_every_length() -> None:
    found = prices("google", "gemini-2.5-pro", {"input": 1.0}, at=NOW)
    assert found is not None
    assert (found.at(500_000).input, found.at(500_000).output) == (1.0, 15)
    all_own = {"input": 1, "output": 2, "cache_writes": 3, "cache_reads": 4}
    assert prices("google", "gemini-2.5-pro", all_own, at=NOW) == Prices(1, 2, 3, 4)
    stepped = Prices(1, longer=(Longer(10, Prices(2)),))
    assert prices("acme", "unheard-of", stepped) == stepped


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inputprice": 1}, "'inputprice'"),
        ({"input": -1}, "input price is -1"),
        ({"outputPrice": "3"}, "output price is '3'"),
        ({"cache_reads": True}, "cache_reads price is True"),
        ({"input": float("nan")}, "input price is nan"),
    ],
)
def test_an_invalid_price_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        prices("openai", "gpt-4o", given)
