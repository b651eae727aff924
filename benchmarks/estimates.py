"""Estimates: how long one takes, and how close it is to the result.

    python benchmarks/estimates.py [FILES] [--rounds N] [--conversations N]

FILES contain conversations; without them only the times for a generated session of 200,000 tokens
are measured, with an empty memo of counts. The built-in summarizer writes the summaries. An output
token counts as four input tokens, like most prices.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

from enfold import wire
from enfold.condensation import Plan
from enfold.errors import EnfoldError
from enfold.messages import Conversation
from enfold.pipeline import Request, make_plan
from enfold.retention import split
from enfold.strategies import contract, presets
from enfold.strategies.contract import Strategy, Summarizers
from enfold.summaries import Summary, SummaryRequest
from enfold.summaries.local import LocalSummarizer
from enfold.summaries.prompts import build
from enfold.tokens import count_messages, get, warm
from enfold.tokens.tokenizers import Memo
from enfold.transcripts import read
from enfold.view import View

sys.path.insert(0, str(Path(__file__).parent))
from conversations import agent

TOKENIZER = "o200k_base"
TOKENS_PER_MESSAGE = 430
OUTPUT_PRICE = 4
NEAR = 0.2
GOALS = (None, 19_000, 76_000)
"""As small as possible, and 60 % of windows of 32k and 128k."""
WAYS = ("native", "lossless", "truncation", "balanced", "quality", "cost", "agent")
"""Strategies, and presets of the strategy smart."""


def strategy_of(name: str, summarizer: LocalSummarizer) -> Strategy:
    """Return a strategy or a preset by its name."""
    chosen, config = presets.choose(None if name in contract.names() else name, None, None)
    if name in contract.names():
        chosen, config = name, {}
    return contract.get(chosen).make_from(config, Summarizers(summarizer))


class Reading(LocalSummarizer):
    """A summarizer that counts its input."""

    read = 0
    written = 0

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Summarize, and count the input."""
        summary = await super().summarize(request)
        prompt = build(request)
        read = sum(get(request.tokenizer).count_many([prompt.system, prompt.user]))
        object.__setattr__(self, "read", self.read + read)
        object.__setattr__(self, "written", self.written + summary.tokens)
        return summary


class EstimatedShares(NamedTuple):
    """One conversation: the estimates as shares of the results."""

    way: str
    after: float
    cost: float | None
    """None if no summary was written and none was expected."""


def task_of(conversation: Conversation, strategy: Strategy, goal: int | None) -> Plan:
    """Return the plan of a condensation without a store."""
    messages = conversation.messages
    counts = tuple(count_messages(messages, TOKENIZER))
    retention = strategy.retention
    request = Request(
        View.of(messages, counts, TOKENIZER),
        strategy,
        retention,
        goal or max(1, sum(counts)),
        target=goal,
        split=split(messages, counts, retention, room=0) if goal is None else None,
        restorable_by=None,
    )
    return make_plan(request)


async def compare(conversations: Iterator[Conversation]) -> list[EstimatedShares]:
    """Compare every conversation that can be summarized, with every goal."""
    found: list[EstimatedShares] = []
    for conversation in conversations:
        for goal, way in product(GOALS, WAYS):
            reading = Reading()
            strategy = strategy_of(way, reading)
            plan = task_of(conversation, strategy, goal)
            if not strategy.touches(plan):
                continue
            expected = await strategy.estimate(plan)
            reduction, cost = expected.reduction, expected.cost
            try:
                answer = await strategy.condense(plan)
            except EnfoldError:
                continue
            estimated = cost.input_tokens + OUTPUT_PRICE * cost.output_tokens
            actual = reading.read + OUTPUT_PRICE * reading.written
            share = estimated / actual if actual else (None if not estimated else float("inf"))
            found.append(EstimatedShares(way, reduction.tokens_after / answer.tokens(plan), share))
    return found


def near(shares: list[float]) -> str:
    """Return the share of close estimates, and the extremes."""
    if not shares:
        return "– | –"
    within = sum(abs(share - 1) <= NEAR for share in shares) / len(shares)
    return f"{within:.0%} | {min(shares):.2f}–{max(shares):.2f}"


async def time_of_one(way: str, session: Conversation, rounds: int) -> tuple[int, float]:
    """Return the tokens, and the best CPU milliseconds of an estimate."""
    strategy = strategy_of(way, LocalSummarizer())
    plan = task_of(session, strategy, None)
    cpu = []
    for _ in range(rounds):
        setattr(get(TOKENIZER), "_memo", Memo())  # noqa: B010 - a benchmark may reach in
        start_cpu = time.process_time()
        await strategy.estimate(plan)
        cpu.append(time.process_time() - start_cpu)
    return plan.tokens, min(cpu) * 1_000


async def main() -> None:
    """Print the time, and a table of how close the estimates are."""
    parser = argparse.ArgumentParser(description="Compare estimates with what it comes to.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--conversations", type=int, default=10, help="of each file")
    options = parser.parse_args()
    warm(TOKENIZER)
    session = wire.parse(list(agent(200_000 // TOKENS_PER_MESSAGE)))
    for way in WAYS:
        tokens, cpu = await time_of_one(way, session, options.rounds)
        print(f"{way}, {tokens:,} tokens: an estimate takes {cpu:.0f} ms of CPU")
    if not options.files:
        return
    print("\n| strategy | runs | tokens, near | est. / actual | cost, near | est. / actual |")
    print("|---|--:|--:|--:|--:|--:|")
    everything: list[EstimatedShares] = []
    for file in options.files:
        transcripts = islice(read(file), options.conversations)
        found = await compare(transcript.conversation() for transcript in transcripts)
        everything += found
    for way in WAYS:
        _print(way, [each for each in everything if each.way == way])
    _print("all", everything)


def _print(name: str, found: list[EstimatedShares]) -> None:
    costs = [each.cost for each in found if each.cost is not None]
    after, cost = near([each.after for each in found]), near(costs)
    print(f"| {name} | {len(found)} | {after} | {cost} |")


if __name__ == "__main__":
    asyncio.run(main())
