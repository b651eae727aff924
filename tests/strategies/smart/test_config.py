"""The smart strategy's config: the names of the design, and errors that name the field."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from enfold import fields
from enfold.errors import ConfigError
from enfold.jsontext import loads
from enfold.strategies.smart.config import (
    Condition,
    Execution,
    OperationConfig,
    Selection,
    SmartConfig,
    Summarize,
    Truncate,
)

WHOLE: dict[str, Any] = {
    "losslessPrelude": {
        "enabled": True,
        "operations": {
            "deduplicateFileReads": True,
            "consolidateToolResults": False,
            "removeObsoleteState": True,
        },
    },
    "passes": [
        {
            "id": "pass1",
            "name": "Old results",
            "description": "Truncates",
            "selection": {"type": "preserve_recent", "keepRecentCount": 5},
            "mode": "individual",
            "individualConfig": {
                "defaults": {
                    "messageText": "keep",
                    "toolParameters": {
                        "operation": "truncate",
                        "params": {"truncate": {"maxChars": 100, "addEllipsis": False}},
                    },
                    "toolResults": {
                        "operation": "summarize",
                        "params": {
                            "summarize": {
                                "apiProfile": "cheap",
                                "maxTokens": 80,
                                "customPrompt": "In a line: {conversation_history}",
                            }
                        },
                    },
                },
                "overrides": [{"messageIndex": 3, "operations": {"toolResults": "suppress"}}],
            },
            "execution": {"type": "always"},
        },
        {
            "id": "pass2",
            "name": "Summary",
            "selection": {"type": "preserve_percent", "keepPercentage": 25},
            "mode": "batch",
            "batchConfig": {
                "operation": "summarize",
                "summarizationConfig": {
                    "apiProfile": "cheap",
                    "customPrompt": "Short.",
                    "keepFirst": 1,
                    "keepLast": 2,
                },
            },
            "execution": {"type": "conditional", "condition": {"tokenThreshold": 40000}},
        },
    ],
}


def read(value: Any) -> SmartConfig:
    return fields.read(SmartConfig, value)


def changed(path: str, value: Any) -> dict[str, Any]:
    """The whole config with one field set, by a path such as `passes.0.mode`."""
    config: Any = fields.write(read(WHOLE))
    *way, last = path.split(".")
    at = config
    for key in way:
        at = at[int(key)] if key.isdigit() else at[key]
    at[last] = value
    return dict(config)


def test_the_names_of_the_design_are_read_exactly() -> None:
    config = read(WHOLE)
    assert config.lossless_prelude.operations.remove_obsolete_state
    first, second = config.passes
    assert first.selection == Selection(type="preserve_recent", keep_recent_count=5)
    assert first.individual_config is not None
    defaults = first.individual_config.defaults
    assert defaults.message_text == OperationConfig(operation="keep")
    assert defaults.tool_parameters.truncate == Truncate(max_chars=100, add_ellipsis=False)
    assert defaults.tool_results.summarize.api_profile == "cheap"
    assert first.individual_config.overrides[0].operations.tool_results == OperationConfig(
        operation="suppress"
    )
    assert second.execution == Execution(
        type="conditional", condition=Condition(token_threshold=40_000)
    )
    assert second.batch_config is not None
    assert second.batch_config.summarization_config.keep_last == 2


def test_a_config_survives_writing_and_reading() -> None:
    assert read(fields.write(read(WHOLE))) == read(WHOLE)
    assert read(fields.write(SmartConfig())) == SmartConfig()


def test_an_operation_without_params_has_defaults() -> None:
    assert OperationConfig(operation="truncate").truncate.max_lines == 10
    assert OperationConfig(operation="summarize").summarize == Summarize()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (
            "passes.1.selection.type",
            "newest",
            "passes[1].selection.type: expected one of ",
        ),
        ("passes.1.selection", {"type": "custom"}, "passes[1].selection.indexes: is missing"),
        ("passes.0.selection.keepRecentCount", None, "passes[0].selection.keepRecentCount: is"),
        ("passes.1.selection.keepPercentage", 101, "passes[1].selection.keepPercentage: expected"),
        (
            "passes.0.mode",
            "bulk",
            "passes[0].mode: expected one of batch, individual",
        ),
        ("passes.0.mode", "batch", "passes[0].batchConfig: is missing"),
        ("passes.1.mode", "individual", "passes[1].individualConfig: is missing"),
        ("passes.1.id", "pass1", "passes[1].id: 'pass1' is the id of 2"),
        ("passes.0.id", " ", "passes[0].id: is empty"),
        ("passes.1.execution.condition", None, "passes[1].execution.condition: is missing"),
        (
            "passes.1.batchConfig.operation",
            "truncate",
            "expected one of keep, summarize",
        ),
        (
            "passes.0.individualConfig.defaults.toolResults",
            "shorten",
            "defaults.toolResults.operation: expected one of keep, suppress, truncate, ",
        ),
        (
            "passes.0.individualConfig.defaults.toolResults",
            {"operation": "truncate", "params": {"truncate": {}}},
            "passes[0].individualConfig.defaults.toolResults.params.truncate: give maxChars",
        ),
        (
            "passes.1.batchConfig.summarizationConfig.customPrompt",
            "{nonsense}",
            "passes[1].batchConfig.summarizationConfig.customPrompt: ",
        ),
        ("losslessPrelude.operations.dedupe", True, "losslessPrelude.operations.dedupe: unknown"),
        (
            "passes.0.conditions",
            {},
            "passes[0].conditions: unknown field; ",
        ),
        ("passes", {}, "passes: expected an array"),
    ],
)
def test_errors_name_the_path_of_the_wrong_field(path: str, value: Any, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(changed(path, value))
    assert words in str(caught.value)


def test_the_config_in_the_documentation_can_be_used() -> None:
    text = files("enfold.strategies").joinpath("README.md").read_text(encoding="utf-8")
    example = text.partition("```json")[2].partition("```")[0]
    assert len(read(loads(example)).passes) == 2
