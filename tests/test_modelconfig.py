"""A model config is checked when it is made."""

import pytest

from enfold.budget import Limits
from enfold.errors import ConfigError
from enfold.modelconfig import SHIPPED, ModelConfig


def test_twelve_models_are_shipped_with_their_published_limits() -> None:
    shipped = {config.id: (config.max_input, config.max_output) for config in SHIPPED}
    assert len(shipped) == 12
    assert shipped["openai:gpt-5"] == (272_000, 128_000)
    assert shipped["anthropic:claude-opus-4-1"] == (196_000, 4_096)
    assert shipped["google:gemini-2.5-flash"] == (983_041, 65_535)


def test_a_config_gives_the_budget_its_limits() -> None:
    config = ModelConfig("a:b", 1_000, 100, correction=1.25)
    assert config.limits == Limits(1_000, 100, 1.25)
    assert (config.provider, config.model) == ("a", "b")


@pytest.mark.parametrize(
    ("id", "values", "words"),
    [
        ("gpt-4o", {}, "provider:model"),
        (":x", {}, "provider:model"),
        ("a:b", {"max_input": 0}, "max_input is 0"),
        ("a:b", {"max_output": -1}, "max_output is -1"),
        ("a:b", {"threshold": 0.01}, "threshold 0.01"),
        ("a:b", {"correction": 0}, "correction is 0"),
    ],
)
def test_impossible_limits_are_refused(id: str, values: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ModelConfig(id, **{"max_input": 10, "max_output": 10, **values})  # type: ignore[arg-type]
