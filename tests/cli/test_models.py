"""`enfold models`: limits listed, shown, set and reset; a wrong one is named."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Enfold


def test_models_are_listed_by_a_part_of_their_name(stored: Enfold) -> None:
    everything = stored("models", "--json").json
    some = stored("models", "list", "GPT-4o", "--json").json
    assert 0 < len(some) < len(everything)
    assert all("gpt-4o" in model["id"] for model in some)
    title, head, *rows = stored("models", "gpt-4o").text.splitlines()
    assert title == f"{len(some)} models"
    assert head.split()[0] == "model"
    assert len(rows) == len(some)


def test_a_name_that_no_model_has_says_what_to_do(stored: Enfold) -> None:
    outcome = stored("models", "zeppelin")
    assert outcome.text.startswith("0 models\n")
    assert "enfold models set" in outcome.stderr_text


def test_a_model_is_shown_by_id_or_name(stored: Enfold) -> None:
    (model,) = stored("models", "show", "openai:gpt-4o", "--json").json
    assert model["max_input"] == 111_616
    assert "111,616" in stored("models", "show", "openai:gpt-4o").text
    assert stored("models", "show", "gpt-4o", "--json").json == [model]
    stored("models", "show", "zeppelin").refused("'zeppelin'", "provider:zeppelin")
    stored("models", "set", "mine:gpt-4o", "--max-input", "9000")
    stored("models", "show", "gpt-4o").refused("mine:gpt-4o", "openai:gpt-4o")


def test_limits_are_set_and_reset(stored: Enfold) -> None:
    (before,) = stored("models", "show", "openai:gpt-4o", "--json").json
    options = ["--max-input", "50000", "--threshold", "0.8", "--tokenizer", "cl100k_base"]
    (after,) = stored("models", "set", "openai:gpt-4o", *options, "--json").json
    changed = {"max_input": 50_000, "threshold": 0.8, "tokenizer": "cl100k_base"}
    assert after == {**before, **changed, "source": "manual", "own": ["threshold"]}
    assert stored("models", "show", "openai:gpt-4o", "--json").json == [after]
    assert stored("models", "reset", "openai:gpt-4o", "--json").json == [before]


def test_a_new_model_is_added(stored: Enfold) -> None:
    outcome = stored("models", "set", "mine:tiny", "--max-input", "1000", "--max-output", "0")
    assert "mine:tiny" in outcome.text
    assert len(stored("models", "mine:", "--json").json) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-input", "0"], ["max_input is 0"]),
        (["--max-input", "-7"], ["max_input is -7"]),
        (["--max-input", "9" * 30], ["max_input is 999"]),
        (["--max-output", "-1"], ["max_output is -1"]),
        (["--threshold", "95"], ["threshold 95", "0.05 to 1"]),
        (["--threshold", "nan"], ["threshold nan"]),
        (["--retention-tokens", "-1"], ["retention_tokens is -1"]),
        (["--correction", "0"], ["correction is 0"]),
        (["--correction", "nan"], ["correction is nan"]),
        (["--correction", "inf"], ["correction is inf"]),
        (["--tokenizer", "abacus"], ["no tokenizer 'abacus'"]),
        ([], ["nothing to set", "--max-input"]),
    ],
    ids=" ".join,
)
def test_a_wrong_limit_is_named_and_nothing_is_set(
    options: list[str], words: list[str], stored: Enfold
) -> None:
    stored("models", "set", "mine:tiny", *options).refused(*words)
    assert stored("models", "mine:tiny", "--json").json == []


@pytest.mark.parametrize(
    "command", [["show"], ["reset"], ["set", "--max-input", "5"]], ids=" ".join
)
def test_a_model_is_provider_and_model(command: list[str], stored: Enfold) -> None:
    name, *options = command
    stored("models", name, "zeppelin", *options).refused("'zeppelin'", "provider:zeppelin")
