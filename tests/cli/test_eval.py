"""`enfold eval`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from enfold.cli import run
from enfold.evaluation.measures import RULES
from tests.evaluation.talks import conversation


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "talks.jsonl"
    path.write_text(json.dumps(conversation(1)), encoding="utf-8")
    return path


def test_a_table_and_a_picture(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = file.with_name("kept.svg")
    assert run(["eval", str(file), "--budget", "0.2", "--no-chains", "--plot", str(plot)]) == 0
    table, rules = capsys.readouterr().out.split("Evidence by rule")
    lines = table.splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["strategy", "newest", "native"]
    assert "verbatim, of all" in rules
    assert plot.read_text(encoding="utf-8").startswith("<svg")


def test_conversations_that_did_not_shrink_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "blank.json"
    messages = [{"role": role, "content": " " * 999} for role in ("user", "assistant") * 20]
    path.write_text(json.dumps(messages), encoding="utf-8")
    assert run(["eval", str(path), "--no-chains"]) == 0
    assert "was not condensed by native: " in capsys.readouterr().out


def test_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["eval", str(file), "--strategy", "truncation", "--no-chains", "--json"]
    assert run(given) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["way"]["strategy"] for each in found["summaries"]] == ["newest", "truncation"]
    assert found["cases"][0]["case"] == "talk-1"
    assert [each["rule"] for each in found["rules"]] == [rule.name for rule in RULES]


def test_rules_are_planted_in_chains(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = file.with_name("rules.txt")
    rules.write_text("Never sell the anchor.\n\nOnly sail on Tuesdays.\n", encoding="utf-8")
    assert run(["eval", str(file), "--budget", "0.2", "--rules", str(rules), "--json"]) == 0
    newest, native = json.loads(capsys.readouterr().out)["summaries"]
    assert newest["rules"] == []
    assert len(native["rules"]) == 11


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "name at least one file"),
        (["nowhere.jsonl"], "nowhere.jsonl"),
        (["FILE", "--strategy", "magic"], "magic"),
        (["FILE", "--budget", "0"], "budget is 0"),
    ],
)
def test_mistakes_are_named(
    file: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["eval", *(str(file) if each == "FILE" else each for each in more)]) == 2
    assert message in capsys.readouterr().err


def test_metrics(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", str(file), "--metrics"]) == 0
    shown = capsys.readouterr().out
    assert "compression ratio" in shown
    assert run(["eval", str(file), "--metrics", "--json"]) == 0
    assert {each["name"] for each in json.loads(capsys.readouterr().out)} > {"compression ratio"}


def test_a_prompt_needs_a_profile(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["eval", str(file), "--prompt", str(file)]) == 2
    assert "--profile" in capsys.readouterr().err
