"""The cost and the result of a strategy, simulated before a model is called."""

from __future__ import annotations

import json
import random
import sys
from types import FrameType

import pytest

from enfold.encodings import encode
from enfold.messages import Message
from enfold.strategies.lossless.units import units_of
from enfold.summaries.local import LocalSummarizer
from enfold.summaries.prompts import build
from enfold.testing import ScriptedSummarizer, assistant, call, result, user
from enfold.tokens import compute_async, get
from tests.strategies.tasks import TOKENIZER, plan_for, strategy

CHAT = tuple(
    user(f"{n} " + "alpha " * 200) if n % 2 == 0 else assistant(f"{n} " + "beta " * 200)
    for n in range(12)
)


def price(author: str, input_tokens: int, output_tokens: int) -> float | None:
    return input_tokens * 1e-6 + output_tokens * 4e-6 if author == "paid" else None


async def test_a_simulation_calls_no_model_and_predicts_the_run() -> None:
    paid = ScriptedSummarizer("".join(f"alpha {n} " for n in range(70)), name="paid")
    how = strategy("native", None, paid)
    plan = plan_for(CHAT, how)
    foretold = await how.estimate(plan, price)
    reduction, cost = foretold.reduction, foretold.cost
    assert paid.requests == []
    answer = await how.condense(plan)
    prompt = build(paid.requests[0])
    read = sum(get(TOKENIZER).count_many([prompt.system, prompt.user]))
    assert cost.calls == 1
    assert cost.input_tokens == pytest.approx(read, rel=0.01)
    assert 150 <= cost.output_tokens <= plan.summary_tokens
    assert cost.dollars == pytest.approx(cost.input_tokens * 1e-6 + cost.output_tokens * 4e-6)
    assert answer.tokens(plan) <= reduction.tokens_after < plan.tokens
    assert reduction.share == pytest.approx(1 - reduction.tokens_after / plan.tokens)


async def test_reading_in_pieces_is_estimated_as_several_calls() -> None:
    paid = ScriptedSummarizer("word " * 500, name="paid", max_input=4_000)
    how = strategy("native", None, paid)
    plan = plan_for(CHAT * 8, how)
    cost = (await how.estimate(plan, price)).cost
    await how.condense(plan)
    prompts = [build(request) for request in paid.requests]
    read = sum(sum(get(TOKENIZER).count_many([prompt.system, prompt.user])) for prompt in prompts)
    assert len(prompts) > 5
    assert cost.calls == pytest.approx(len(prompts), rel=0.2)
    assert cost.input_tokens == pytest.approx(read, rel=0.2)


def _agent(turns: int) -> tuple[Message, ...]:
    """A session of mostly tool output, of which a summarizer is shown little."""
    messages = [user("Make the parser faster, and keep the interface as it is.")]
    for turn in range(turns):
        output = "\n".join(f"{n}: value_{turn}_{n} = compute({n * turn})" for n in range(400))
        messages += [
            assistant(f"Looking at module {turn}.", call(f"c{turn}")),
            result(f"c{turn}", output),
        ]
    return (*messages, user("Go on."))


async def test_a_summary_of_little_that_is_read_is_not_as_long_as_it_may_be() -> None:
    how = strategy("native", None, LocalSummarizer())
    plan = plan_for(_agent(30), how)
    reduction = (await how.estimate(plan)).reduction
    answer = await how.condense(plan)
    assert answer.summary is not None
    as_long_as_it_may_be = answer.tokens(plan) - answer.summary.tokens + plan.summary_tokens
    assert answer.tokens(plan) <= reduction.tokens_after < as_long_as_it_may_be * 0.6


async def test_a_long_text_is_counted_by_samples() -> None:
    paid = ScriptedSummarizer("s", name="paid")
    how = strategy("native", None, paid)
    varied = [user(f"{n} " + f"palabra {n} 漢字 " * 40) for n in range(1_200)]
    plan = plan_for((*varied, *CHAT), how)
    cost = (await how.estimate(plan)).cost
    await how.condense(plan)
    prompt = build(paid.requests[0])
    read = sum(get(TOKENIZER).count_many([prompt.system, prompt.user]))
    assert cost.input_tokens == pytest.approx(read, rel=0.03)


def _listing(turns: int) -> tuple[Message, ...]:
    """A session of indented JSON, which is written on one line without loss."""
    messages = [user("Check the records.")]
    for turn in range(turns):
        records = [{"id": turn * 100 + n, "name": f"record {n * turn}"} for n in range(60)]
        output = json.dumps(records, indent=4) if turn % 3 else f"nothing new in {turn}\n" * 150
        messages += [assistant("Next.", call(f"c{turn}")), result(f"c{turn}", output)]
    return (*messages, user("Go on."))


@pytest.mark.parametrize("turns", [40, 160])
async def test_an_estimate_tries_encodings_on_a_part_of_a_long_session(turns: int) -> None:
    how = strategy("lossless", {"deduplicateBlocks": False}, LocalSummarizer())
    plan = plan_for(_listing(turns), how)
    tried = set[str]()

    def record(frame: FrameType, event: str, _value: object) -> None:
        if event == "call" and frame.f_code is encode.__code__:
            tried.add(frame.f_locals["text"])

    await compute_async(sys.setprofile, record)
    try:
        reduction = (await how.estimate(plan)).reduction
    finally:
        await compute_async(sys.setprofile, None)
    answer = await how.condense(plan)
    assert answer.tokens(plan) < 0.7 * plan.tokens
    assert reduction.tokens_after == pytest.approx(answer.tokens(plan), rel=0.1)
    size = sum(map(len, tried))
    is_whole = turns == 40
    assert (reduction.tokens_after == answer.tokens(plan)) is is_whole
    assert size < 400_000 if is_whole else size < 200_000


def _files_read_in_parts(reads: int) -> tuple[Message, ...]:
    """Return reads of files, each with lines that an earlier read has shown, and new ones."""
    rng = random.Random(5)
    lines = [" ".join(rng.choices("abcdefghijklmnop", k=20)) + f" {n}" for n in range(30 * reads)]
    messages = [user("Read them.")]
    for n in range(reads):
        shown = "\n".join(lines[30 * n : 30 * n + 60])
        messages += [
            assistant("", call(f"r{n}", "read", {"path": f"f{n}"})),
            result(f"r{n}", shown),
        ]
    return (*messages, assistant("Done."), user("Thanks."), assistant("Bye."), user("And now?"))


async def test_an_estimate_calculates_repeated_blocks_of_a_long_session() -> None:
    how = strategy("lossless", None, LocalSummarizer())
    plan = plan_for(_files_read_in_parts(160), how)
    divided = 0

    def record(frame: FrameType, event: str, _value: object) -> None:
        nonlocal divided
        divided += event == "call" and frame.f_code is units_of.__code__

    await compute_async(sys.setprofile, record)
    try:
        reduction = (await how.estimate(plan)).reduction
    finally:
        await compute_async(sys.setprofile, None)
    assert divided == 0
    answer = await how.condense(plan)
    assert answer.tokens(plan) < 0.7 * plan.tokens
    assert reduction.tokens_after == pytest.approx(answer.tokens(plan), rel=0.1)


async def test_an_unknown_price_makes_the_cost_unknown() -> None:
    config = {
        "losslessPrelude": {"enabled": False},
        "passes": [
            {
                "id": name,
                "name": name,
                "selection": {"type": "custom", "indexes": [index]},
                "mode": "individual",
                "individualConfig": {
                    "defaults": {
                        "messageText": {
                            "operation": "summarize",
                            "params": {"summarize": {"apiProfile": name, "maxTokens": 50}},
                        }
                    }
                },
            }
            for index, name in ((0, "paid"), (1, "secret"))
        ],
    }
    both = (ScriptedSummarizer("s", name="paid"), ScriptedSummarizer("s", name="secret"))
    how = strategy("smart", config, *both)
    cost = (await how.estimate(plan_for(CHAT, how), price)).cost
    assert [each.author for each in cost.by_author] == ["paid", "secret"]
    assert cost.calls == 2
    assert cost.output_tokens == 100
    assert cost.dollars is None
    assert (await how.estimate(plan_for(CHAT, how))).cost.dollars is None


async def test_nothing_to_do_costs_nothing() -> None:
    how = strategy("native")
    cost = (await how.estimate(plan_for(CHAT[:1], how), price)).cost
    assert (cost.calls, cost.dollars) == (0, 0.0)
