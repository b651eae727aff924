"""Estimates: how long one takes, and how close it is to the result.

    python benchmarks/estimates.py [FILES] [--rounds N] [--conversations N]

FILES contain conversations; without them only the time for a generated session of 1M tokens is
measured. The built-in summarizer writes the summaries. An output token counts as four input tokens,
like most prices.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from enfold import wire
from enfold.condensation import Plan
from enfold.errors import EnfoldError
from enfold.messages import Conversation
from enfold.pipeline import Request, make_plan
from enfold.retention import split
from enfold.strategies import contract
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


class Reading(LocalSummarizer):
    """A summarizer that counts its input."""

    read: int
    written: int

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Summarize, and count the input."""
        summary = await super().summarize(request)
        prompt = build(request)
        read = sum(get(request.tokenizer).count_many([prompt.system, prompt.user]))
        object.__setattr__(self, "read", read)
        object.__setattr__(self, "written", summary.tokens)
        return summary


class Found(NamedTuple):
    """One conversation: the estimates as shares of the results."""

    after: float
    cost: float


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


async def compare(conversations: Iterator[Conversation]) -> list[Found]:
    """Compare every conversation that can be summarized, with every goal."""
    found: list[Found] = []
    for conversation in conversations:
        for goal in GOALS:
            reading = Reading()
            strategy = contract.get("native").make_from(None, Summarizers(reading))
            plan = task_of(conversation, strategy, goal)
            if not strategy.touches(plan):
                continue
            expected = await strategy.estimate(plan)
            reduction, cost = expected.reduction, expected.cost
            try:
                answer = await strategy.condense(plan)
            except EnfoldError:
                continue
            foretold = cost.input_tokens + OUTPUT_PRICE * cost.output_tokens
            came = reading.read + OUTPUT_PRICE * reading.written
            found.append(Found(reduction.tokens_after / answer.tokens(plan), foretold / came))
    return found


def near(shares: list[float]) -> str:
    """Return the share of close estimates, and the extremes."""
    within = sum(abs(share - 1) <= NEAR for share in shares) / len(shares)
    return f"{within:.0%} | {min(shares):.2f}–{max(shares):.2f}"


async def time_of_one(rounds: int) -> tuple[int, float, float]:
    """Return the tokens, and the best wall and CPU milliseconds of an estimate."""
    strategy = contract.get("native").make_from(None, Summarizers(LocalSummarizer()))
    session = wire.parse(list(agent(1_000_000 // TOKENS_PER_MESSAGE)))
    plan = task_of(session, strategy, None)
    clock, cpu = [], []
    for _ in range(rounds):
        setattr(get(TOKENIZER), "_memo", Memo())  # noqa: B010 - a benchmark may reach in
        start, start_cpu = time.perf_counter(), time.process_time()
        await strategy.estimate(plan)
        clock.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
    return plan.tokens, min(clock) * 1_000, min(cpu) * 1_000


async def main() -> None:
    """Print the time, and a table of how close the estimates are."""
    parser = argparse.ArgumentParser(description="Compare estimates with what it comes to.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--conversations", type=int, default=10, help="of each file")
    options = parser.parse_args()
    warm(TOKENIZER)
    tokens, clock, cpu = await time_of_one(options.rounds)
    print(f"native, {tokens:,} tokens: an estimate takes {clock:.0f} ms ({cpu:.0f} ms of CPU)\n")
    if not options.files:
        return
    print("| file | runs | tokens after, near | foretold / came | cost, near | foretold / came |")
    print("|---|--:|--:|--:|--:|--:|")
    everything: list[Found] = []
    for file in options.files:
        transcripts = islice(read(file), options.conversations)
        found = await compare(transcript.conversation() for transcript in transcripts)
        everything += found
        if found:
            _print(file.stem, found)
    if everything:
        _print("all", everything)


def _print(name: str, found: list[Found]) -> None:
    after, cost = near([each.after for each in found]), near([each.cost for each in found])
    print(f"| {name} | {len(found)} | {after} | {cost} |")


if __name__ == "__main__":
    asyncio.run(main())
