from __future__ import annotations

import pytest

from enfold.errors import ConfigError
from enfold.tokens import NAMES, correction


@pytest.mark.parametrize(
    ("provider", "model", "factor"),
    [
        ("anthropic", "claude-2.1", 1.18),
        ("anthropic", "claude-3-haiku-20240307", 1.18),
        ("anthropic", "claude-3-5-sonnet-20241022", 1.18),
        ("anthropic", "claude-sonnet-4-20250514", 1.18),
        ("anthropic", "claude-opus-4-5", 1.18),
        ("anthropic", "claude-opus-4-6", 1.18),
        ("anthropic", "claude-opus-4-7", 1.43),
        ("anthropic", "claude-opus-4-10", 1.43),
        ("anthropic", "claude-sonnet-5", 1.43),
        ("anthropic", "claude-latest", 1.43),
        ("anthropic", "an-alias", 1.43),
        ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", 1.18),
        ("vertex", "claude-haiku-4-5@20251001", 1.18),
        ("openrouter", "anthropic/claude-opus-4.7", 1.43),
        ("google", "gemini-2.5-pro", 1.15),
        ("gemini", "gemini-3-flash", 1.15),
        ("vertex", "publishers/google/models/gemini-2.5-pro", 1.15),
        ("mistral", "mistral-large-latest", 1.10),
        ("openrouter", "qwen/qwen3-coder", 1.05),
        ("groq", "llama-3.3-70b-versatile", 1.02),
        ("deepseek", "deepseek-chat", 1.02),
        ("openai", "gpt-4", 1.05),
        ("openai", "gpt-4-turbo", 1.05),
        ("openai", "gpt-3.5-turbo", 1.05),
        ("openai", "gpt-4o-mini", 1.0),
        ("openai", "gpt-4.1", 1.0),
        ("openai", "gpt-5", 1.0),
        ("openai", "o3-mini", 1.0),
        ("azure", "our-deployment", 1.0),
        ("openrouter", "openai/o1", 1.0),
        ("ollama", "novel-model", 1.0),
    ],
)
def test_factors_for_o200k_base(provider: str, model: str, factor: float) -> None:
    assert correction(provider, model, "o200k_base").factor == factor
    assert correction(provider, model).factor == factor


@pytest.mark.parametrize(
    ("model", "tokenizer"),
    [
        ("gpt-4o", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("claude-opus-4-5", "claude-3"),
        ("claude-opus-4-7", "claude"),
    ],
)
def test_a_models_own_tokenizer_needs_no_correction(model: str, tokenizer: str) -> None:
    found = correction("any", model, tokenizer)
    assert found.factor == 1.0
    assert "exact" in found.reason


def test_claudes_tokenizer_counts_no_less_for_older_models() -> None:
    assert correction("anthropic", "claude-opus-4-5", "claude").factor == 1.0
    assert correction("anthropic", "claude-opus-4-7", "claude-3").factor == 1.21


def test_the_tokenizer_of_an_unlisted_model_is_reported_as_unknown() -> None:
    assert "is unknown" in correction("ollama", "novel-model").reason


def test_the_reason_names_models_factor_and_tokenizer() -> None:
    reason = correction("google", "gemini-2.5-pro").reason
    assert "Gemini" in reason
    assert "1.15" in reason
    assert "o200k_base" in reason


@pytest.mark.parametrize("tokenizer", NAMES)
@pytest.mark.parametrize("model", ["gpt-5", "claude-opus-4-7", "gemini-2.5-pro", "novel"])
def test_a_limit_is_never_raised(model: str, tokenizer: str) -> None:
    assert correction("any", model, tokenizer).factor >= 1.0


def test_an_unknown_tokenizer_is_refused() -> None:
    with pytest.raises(ConfigError, match="no tokenizer 'p50k_base'"):
        correction("openai", "gpt-4o", "p50k_base")
