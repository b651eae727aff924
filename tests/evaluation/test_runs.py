"""Cases measured: by the newest messages, by strategies, in one process and in several."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from enfold.errors import ConfigError
from enfold.evaluation.measures import NEWEST, RULES, Method
from enfold.evaluation.report import kind_rows
from enfold.evaluation.run import CaseResult, EvaluationPlan, measure


def test_every_case_is_measured_each_way(outcomes: list[CaseResult]) -> None:
    assert [(each.case, each.way.strategy) for each in outcomes] == [
        (f"talk-{number}", strategy) for number in (1, 2, 3) for strategy in (NEWEST, "native")
    ]
    for each in outcomes:
        assert each.tokens_after <= 0.2 * each.tokens_before
        assert each.pairs_are_whole
        assert not each.failure
        assert each.evidence is not None
        assert each.evidence.loosest.questions == 2
        assert each.evidence.search_tokens <= 1_500
        assert each.sending.condensed < each.sending.as_it_was


def test_old_facts_are_in_the_summary_and_not_among_the_newest(outcomes: list[CaseResult]) -> None:
    newest, native = outcomes[0], outcomes[1]
    assert newest.evidence is not None
    assert native.evidence is not None
    assert newest.evidence.loosest.in_view == 0
    assert native.evidence.loosest.in_view > 0
    assert native.evidence.loosest.reachable == newest.evidence.loosest.by_search == 1
    assert native.items_kept > newest.items_kept
    assert (newest.is_restored, native.is_restored) == (None, True)
    assert native.users_kept >= newest.users_kept > 0
    assert native.typed >= native.typed_kept > newest.typed_kept


def test_a_stricter_rule_never_finds_more(outcomes: list[CaseResult]) -> None:
    for each in outcomes:
        assert each.evidence is not None
        telling = [each.evidence.by_rule[rule.name] for rule in RULES[1:]]
        assert [reach.questions for reach in telling] == [2, 2, 2, 2]
        for name in ("in_view", "by_search", "reachable"):
            shares = [getattr(reach, name) for reach in telling]
            assert shares == sorted(shares)


def test_chains_say_what_is_left_of_the_first_compression(outcomes: list[CaseResult]) -> None:
    decay = outcomes[1].decay
    assert outcomes[0].decay is None
    assert decay is not None
    assert len(decay.in_view) == len(decay.reachable) == 11
    assert decay.reachable[-1] >= 0.9
    assert all(a <= b for a, b in zip(decay.in_view, decay.reachable, strict=True))


def test_processes_give_the_same(files: list[Path], outcomes: list[CaseResult]) -> None:
    plan = EvaluationPlan((Method("native", 0.2),), chained=False)
    found = measure(files, plan, jobs=2)
    expected = [each for each in outcomes if each.way.strategy == "native"]
    assert [(e.case, e.half, e.tokens_after, e.items_kept, e.evidence) for e in found] == [
        (e.case, e.half, e.tokens_after, e.items_kept, e.evidence) for e in expected
    ]


@pytest.mark.parametrize("budget", [0, -1])
def test_a_budget_is_more_than_nothing(budget: float) -> None:
    with pytest.raises(ConfigError, match="budget is"):
        Method("native", budget)


@pytest.mark.parametrize(
    ("after", "expected"), [(251, False), (250, True), (200, True), (199, False)]
)
def test_a_result_is_on_target_from_80_percent_of_it(after: int, expected: bool) -> None:
    assert Method("native", 0.25).is_on_target(1_000, after) is expected


def test_a_budget_is_a_share_or_tokens() -> None:
    assert Method("native", 0.25).target(1_000) == 250
    assert Method("native", 300).target(1_000) == 300


def test_kinds_of_questions_are_reported_apart(tmp_path: Path) -> None:
    texts = ["The anchor weighs nine stone and three pounds.", "The regatta takes place on 7 May."]
    texts += [f"Crate {n} of rope number {n} went to the store house." for n in range(30)]
    kinds = {
        "What does the anchor weigh?": ("fact", ["m0"]),
        "When is the regatta?": ("temporal", ["m1"]),
        "Which orchestra conductor rehearsed symphonies?": ("abstention", []),
    }
    probes = [
        {"question": question, "category": kind, "evidence_message_ids": evidence}
        for question, (kind, evidence) in kinds.items()
    ]
    messages = [{"id": f"m{n}", "role": "user", "content": each} for n, each in enumerate(texts)]
    file = tmp_path / "kinds.jsonl"
    file.write_text(json.dumps({"id": "k", "messages": messages, "probes": probes}) + "\n")
    found = measure([file], EvaluationPlan((Method(NEWEST, 0.2),), chained=False))
    assert list(kind_rows(found)) == [
        ["newest", "abstention", "1", "–", "–", "100.0%"],
        ["newest", "fact", "1", "100.0%", "100.0%", "0.0%"],
        ["newest", "temporal", "1", "100.0%", "100.0%", "0.0%"],
    ]
    assert list(kind_rows([replace(each, kinds=each.kinds[:1]) for each in found])) == []
