"""The limits of models without a configuration."""

import pytest

from enfold.llm.costs import current, detect, of_window, published_limits
from enfold.modelconfig import SHIPPED


def test_a_shipped_model_has_its_shipped_limits() -> None:
    config = detect("openai:gpt-4-turbo")
    assert (config.max_input, config.tokenizer, config.source) == (
        123_904,
        "cl100k_base",
        "default",
    )


@pytest.mark.parametrize(
    ("id", "window"), [("openai:gpt-4.1", 1_000_000), ("anthropic:claude-opus-4-5", 200_000)]
)
def test_the_library_knows_windows_and_the_reply_is_set_aside(id: str, window: int) -> None:
    config = detect(id)
    assert config.max_input + config.max_output == window
    assert 4_096 <= config.max_output <= 64_000
    assert config.source == "library"


def test_a_small_window_is_not_eaten_up_by_the_reply() -> None:
    assert detect("openai:gpt-4").max_input >= 4_096


def test_models_without_an_exact_tokenizer_have_a_correction() -> None:
    assert detect("anthropic:claude-opus-4-5").correction == 1.18
    assert detect("anthropic:claude-opus-4-7").correction == 1.43
    assert detect("openai:gpt-4.1").correction == 1.0


def test_an_unknown_model_gets_default_limits() -> None:
    config = detect("acme:unheard-of")
    assert (config.max_input, config.max_output, config.source) == (128_000, 4_096, "default")


def test_current_models_are_of_the_large_providers_and_not_shipped_ones() -> None:
    found = list(current())
    assert {config.provider for config in found} == {"openai", "anthropic", "google"}
    assert "openai:gpt-4o" not in {config.id for config in found}
    assert all(config.max_input > 0 for config in found)


@pytest.mark.parametrize(
    ("max_output", "limits"),
    [(None, (28_672, 4_096)), (2_000, (30_768, 2_000)), (32_768, (16_384, 16_384))],
)
def test_room_for_the_reply_is_set_aside_from_the_window(
    max_output: int | None, limits: tuple[int, int]
) -> None:
    config = of_window("compatible:mine", 32_768, max_output, "api")
    assert (config.max_input, config.max_output) == limits
    assert config.source == "api"


def test_published_limits_hold_for_the_models_of_their_provider() -> None:
    shipped = {config.id for config in SHIPPED}
    for limits in published_limits():
        for model in limits.models:
            config = detect(f"{limits.provider}:{model}")
            if config.id not in shipped:
                assert (config.max_input, config.max_output, config.source) == (
                    limits.max_input,
                    limits.max_output,
                    "library",
                )
            assert detect(f"acme:{model}").source == "default"
