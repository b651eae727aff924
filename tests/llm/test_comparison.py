"""The cost of a run by profile, and the savings of a compression."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enfold.condensation import Plan
from enfold.errors import ConfigError
from enfold.llm.costs import (
    UNKNOWN,
    BilledTokens,
    CallCost,
    Candidate,
    Figures,
    Longer,
    Prices,
    Savings,
    compare,
    cost_of,
    estimate,
    price_of,
    recommend,
    savings,
)
from enfold.messages import Message
from enfold.retention import Split
from enfold.strategies.contract import Summarizers
from enfold.strategies.native import KIND
from enfold.summaries import SummaryRequest
from enfold.summaries.prompts import build
from enfold.testing import ScriptedSummarizer, assistant, call, result, user
from enfold.tokens import count_messages, get

SONNET = Prices(3.0, 15.0, 3.75, 0.3)
MINI = Prices(0.15, 0.6, None, 0.075)
FIGURES = Figures(8_000, 1_000, calls=1)


def test_an_estimate_is_what_the_figures_cost() -> None:
    assert estimate(FIGURES, SONNET) == CallCost(0.024, 0.015, 0, 0)
    assert estimate(Figures(16_000, 2_000, calls=2), SONNET).total == pytest.approx(0.078)
    cached = estimate(replace(FIGURES, cached_share=0.5), SONNET)
    assert cached.total == pytest.approx(0.012 + 0.0012 + 0.015)
    assert estimate(Figures(calls=0), SONNET).total == 0


def test_an_estimate_without_prices_is_unknown() -> None:
    assert estimate(FIGURES, None).total is None
    assert estimate(Figures(calls=0), None).total == 0


def test_each_call_has_the_price_of_its_own_length() -> None:
    stepped = Prices(1.0, 1.0, longer=(Longer(100_000, Prices(2.0, 2.0)),))
    assert estimate(Figures(200_000, 0, calls=2), stepped).total == pytest.approx(0.2)
    assert estimate(Figures(200_000, 0, calls=1), stepped).total == pytest.approx(0.4)


def test_a_models_own_tokens_are_what_is_paid() -> None:
    assert estimate(FIGURES, SONNET, factor=1.5).parts == pytest.approx((0.036, 0.0225, 0, 0))


def test_candidates_are_ranked_by_cost_and_unknown_ones_come_last() -> None:
    offers = compare(
        FIGURES,
        [Candidate("mystery", None), Candidate("sonnet", SONNET), Candidate("mini", MINI)],
        current="sonnet",
    )
    assert [offer.name for offer in offers] == ["mini", "sonnet", "mystery"]
    assert offers[0].cost.total == pytest.approx(0.0018)
    assert offers[0].saved == pytest.approx(0.0372)
    assert offers[0].share == pytest.approx(0.954, abs=0.001)
    assert (offers[1].saved, offers[1].share) == (0, 0)
    assert (offers[2].cost, offers[2].saved) == (UNKNOWN, None)


def test_profiles_are_compared_by_what_their_models_cost_in_their_own_tokens() -> None:
    profiles = [
        Candidate.of("main", "anthropic:claude-opus-4-5"),
        Candidate.of("cheap", "openai:gpt-4o-mini"),
        Candidate.of("own", "acme:house-model", {"inputPrice": 0.01, "outputPrice": 0.01}),
        Candidate.of("dark", "acme:house-model"),
    ]
    assert [each.correction > 1 for each in profiles] == [True, False, False, False]
    offers = compare(FIGURES, profiles, current="main")
    assert [offer.name for offer in offers] == ["own", "cheap", "main", "dark"]
    assert (offers[1].share or 0) > 0.9


def test_without_a_current_one_the_dearest_is_the_measure() -> None:
    offers = compare(FIGURES, [Candidate("mini", MINI), Candidate("sonnet", SONNET)])
    assert offers[0].share == pytest.approx(0.954, abs=0.001)
    assert compare(FIGURES, [Candidate("free", Prices(0, 0))])[0].share == 0


def test_a_current_one_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"'opus'.*mini"):
        compare(FIGURES, [Candidate("mini", MINI)], current="opus")


def test_the_recommendation_says_why() -> None:
    candidates = [Candidate("sonnet", SONNET), Candidate("mini", MINI), Candidate("mystery", None)]
    best = recommend(FIGURES, candidates, "sonnet")
    assert best is not None
    assert best.name == "mini"
    assert best.reason == (
        "mini costs $0.0018, $0.037 (95%) less than sonnet; the price of 1 more is unknown"
    )
    same = recommend(FIGURES, candidates[:2], "mini")
    assert same is not None
    assert same.reason == "mini is the cheapest already, $0.0018 a run"
    against_unknown = recommend(FIGURES, candidates, "mystery")
    assert against_unknown is not None
    assert "cheapest whose price is known" in against_unknown.reason
    assert recommend(FIGURES, candidates[2:]) is None


def test_a_compression_saves_what_is_no_longer_sent() -> None:
    saved = savings(100_000, 40_000, SONNET, cost=0.5)
    assert saved.next_turn == saved.later_turn == pytest.approx(0.18)
    assert saved.after(3) == pytest.approx(0.04)
    assert saved.pays_off_after == 3
    assert saved.after(0) == -0.5


def test_with_a_prompt_cache_the_new_beginning_is_written_once() -> None:
    saved = savings(100_000, 40_000, SONNET, cached=True)
    assert saved.next_turn == pytest.approx(0.03 - 0.15)
    assert saved.later_turn == pytest.approx(0.018)
    assert saved.pays_off_after == 8
    assert (saved.after(7) or 0) < 0 < (saved.after(8) or 0)


def test_falling_below_a_mark_saves_more_than_the_tokens() -> None:
    stepped = Prices(1.0, 1.0, longer=(Longer(100_000, Prices(2.0, 2.0)),))
    assert savings(110_000, 90_000, stepped).later_turn == pytest.approx(0.22 - 0.09)


def test_savings_at_unknown_prices_are_unknown() -> None:
    unknown = savings(100, 50, None)
    assert (unknown.next_turn, unknown.after(1), unknown.pays_off_after) == (None, None, None)
    assert savings(100, 50, SONNET, cost=None).after(2) is None
    reads_only = savings(100, 50, Prices(cache_reads=0.3), cached=True)
    assert reads_only.next_turn is None
    assert reads_only.later_turn == pytest.approx(50 * 0.3 / 1_000_000)
    assert Savings(-1.0, 0.0).pays_off_after is None


@pytest.mark.parametrize(
    ("cost", "turns"), [(0.75, 1), (1.0, 2), (1.25, 2), (1.5, 3)], ids=["less", "equal", "", "two"]
)
def test_a_compression_has_paid_off_once_it_has_saved_more_than_its_cost(
    cost: float, turns: int
) -> None:
    saved = Savings(1.0, 0.5, cost)
    assert saved.pays_off_after == turns
    assert (saved.after(turns - 1) or 0) <= 0 < (saved.after(turns) or 0)


@given(st.integers(0, 500_000), st.integers(0, 500_000), st.integers(1, 40))
def test_paying_off_is_when_the_sum_turns(before: int, after: int, turns: int) -> None:
    saved = savings(before, min(before, after), SONNET, cost=0.01, cached=True)
    paid, due = saved.after(turns), saved.pays_off_after
    assert paid is not None
    assert (paid > 1e-12) <= (due is not None and due <= turns)
    assert (due is not None and due <= turns) <= (paid > -1e-12)


def conversation(turns: int) -> list[Message]:
    """An agent's work: reasoning, calls, short and long results."""
    messages: list[Message] = []
    for turn in range(turns):
        messages += [
            user(f"Please look at part {turn} of the parser. " + "It fails on nested lists. " * 9),
            assistant(
                "I will read it. " * 12,
                call(f"c{turn}", "read", {"path": f"src/parser_{turn}.py", "limit": 400}),
                thinking="First the tokens, then the tree. " * 8,
            ),
            result(f"c{turn}", "def parse(line: str) -> Node: ...\n" * (20 + 60 * (turn % 4))),
            assistant("It forgets the closing bracket at depth two. " * 6),
        ]
    return messages


@pytest.mark.parametrize("max_input", [None, 6_000])
@pytest.mark.parametrize("turns", [4, 40])
@pytest.mark.parametrize("previous", [None, "Earlier they set up the project. " * 30])
async def test_an_estimate_is_within_a_fifth_of_what_the_run_costs(
    turns: int, max_input: int | None, previous: str | None
) -> None:
    messages = conversation(turns)
    counts = count_messages(messages, "o200k_base")
    # More to summarize makes a longer summary, up to its limit.
    length = 120 if turns > 4 or previous else 70
    summarizer = ScriptedSummarizer("The parser drops brackets. " * length, max_input=max_input)
    cut = len(messages) - 4
    task = Plan(
        tuple(messages),
        tuple(counts),
        Split(head=0, cut=cut, tail_tokens=sum(counts[cut:])),
        "o200k_base",
        previous=previous,
        summary_tokens=800,
    )
    strategy = KIND.make_from(None, Summarizers(summarizer))
    expected = (await strategy.estimate(task, partial(price_of, {"scripted": SONNET}))).cost
    assert summarizer.requests == []
    await strategy.condense(task)
    actual = sum((_cost_of_call(each, length) for each in summarizer.requests), CallCost()).total
    assert actual is not None
    assert expected.dollars == pytest.approx(actual, rel=0.2)
    figures = Figures(expected.input_tokens, expected.output_tokens, expected.calls)
    assert estimate(figures, SONNET).total == pytest.approx(actual, rel=0.2)


@pytest.mark.parametrize(
    "values", [{"input_tokens": -1}, {"calls": -2}, {"cached_share": 1.5}, {"cached_share": -0.1}]
)
def test_figures_that_make_no_sense_are_refused(values: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        Figures(**values)


def test_a_strategy_asks_by_name_and_hears_what_is_known() -> None:
    price = partial(price_of, {"mini": MINI, "mystery": None})
    assert price("mini", 1_000_000, 1_000_000) == pytest.approx(0.75)
    assert price("mystery", 1, 1) is None
    assert price("nobody", 1, 1) is None
    assert price("nobody", 0, 0) == 0


def _cost_of_call(request: SummaryRequest, length: int) -> CallCost:
    """Return the price of the call at a model's rates."""
    count = get(request.tokenizer).count
    prompt = build(request)
    reply = count("The parser drops brackets. " * length)
    return cost_of(SONNET, BilledTokens(count(prompt.system) + count(prompt.user), reply))
