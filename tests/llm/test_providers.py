"""Facts about providers."""

import pytest

from enfold.errors import ConfigError
from enfold.llm.costs import prices
from enfold.llm.providers import PROVIDERS, provider


def test_cheap_models_are_those_of_the_specification() -> None:
    assert {name: PROVIDERS[name].cheap_model for name in ("openai", "anthropic", "google")} == {
        "openai": "gpt-4o-mini",
        "anthropic": "claude-haiku-4-5",
        "google": "gemini-2.5-flash",
    }
    assert PROVIDERS["azure"].cheap_model == "gpt-4o-mini"
    assert PROVIDERS["compatible"].cheap_model is None


@pytest.mark.parametrize("name", sorted(set(PROVIDERS) - {"compatible"}))
def test_cheap_models_have_a_price_and_it_is_low(name: str) -> None:
    cheap = PROVIDERS[name].cheap_model
    assert cheap is not None
    found = prices(name, cheap)
    assert found is not None
    assert found.input is not None
    assert found.input <= 1.25


def test_a_provider_that_needs_a_key_says_where_it_usually_is() -> None:
    assert all(each.key_variables for each in PROVIDERS.values() if each.needs_key)


def test_the_error_of_an_unknown_name_lists_the_known_ones() -> None:
    assert provider("openai").title == "OpenAI"
    with pytest.raises(ConfigError, match="'acme'; available: openai, anthropic"):
        provider("acme")
