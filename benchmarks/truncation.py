"""Truncation of generated agent sessions: time with validation, by size of the input.

    python benchmarks/truncation.py [--rounds N] [--sizes 125000,250000,500000,1000000]

The original session is counted beforehand, as in normal use; shortened content is not. Truncating a
result again must not change it, or the run ends with an error.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

from enfold import wire
from enfold.condensation import Condensation, EditedMessage, Plan, validate
from enfold.retention import split, zones
from enfold.strategies.contract import Summarizers
from enfold.strategies.truncation import Truncation, TruncationConfig
from enfold.summaries.local import LocalSummarizer
from enfold.tokens import Tokenizer, count_messages, get, warm
from enfold.tokens.tokenizers import Memo

sys.path.insert(0, str(Path(__file__).parent))
from conversations import agent

TOKENIZER = "o200k_base"
TOKENS_PER_MESSAGE = 430
CONFIGS = {
    "truncate": TruncationConfig(),
    "suppress": TruncationConfig(truncation_mode="suppress"),
    "head and tail": TruncationConfig(head_and_tail=True),
}


def task_of(tokens: int, strategy: Truncation) -> Plan:
    """Return a session of about this many tokens."""
    messages = wire.parse(list(agent(tokens // TOKENS_PER_MESSAGE))).messages
    counts = tuple(count_messages(messages, TOKENIZER))
    divided = split(messages, counts, strategy.retention, room=0)
    return Plan(messages, counts, divided, TOKENIZER, zones=zones(counts, strategy.retention))


async def run(plan: Plan, strategy: Truncation) -> Condensation:
    """Return a validated answer."""
    answer = await strategy.condense(plan)
    validate(plan, answer)
    return answer


def forget_counts(tokenizer: Tokenizer) -> None:
    """Clear the counts: in normal use shortened content is always new."""
    setattr(tokenizer, "_memo", Memo())  # noqa: B010 - a benchmark may reach in


async def measure(plan: Plan, strategy: Truncation, rounds: int) -> dict[str, Any]:
    """Return the best time of some rounds, and the peak memory."""
    clock, cpu = [], []
    for _ in range(rounds):
        forget_counts(get(TOKENIZER))
        gc.collect()
        start, start_cpu = time.perf_counter(), time.process_time()
        answer = await run(plan, strategy)
        clock.append(time.perf_counter() - start)
        cpu.append(time.process_time() - start_cpu)
    tracemalloc.start()
    await run(plan, strategy)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    await check_idempotence(plan, strategy, answer)
    return {
        "tokens": plan.tokens,
        "after": answer.tokens(plan),
        "edits": len(answer.edits),
        "clock": min(clock) * 1_000,
        "cpu": min(cpu) * 1_000,
        "peak": peak / 2**20,
    }


async def check_idempotence(plan: Plan, strategy: Truncation, answer: Condensation) -> None:
    """Raise an error if truncating again changes anything."""
    messages = list(plan.messages)
    counts = list(plan.counts)
    for entry in answer.entries:
        if isinstance(entry, EditedMessage):
            messages[entry.index], counts[entry.index] = entry.message, entry.tokens
    again = await strategy.condense(replace(plan, messages=tuple(messages), counts=tuple(counts)))
    if not again.is_unchanged:
        sys.exit(f"{len(again.edits)} messages were cut a second time")


async def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description="Time truncation.")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sizes", default="125000,250000,500000,1000000")
    options = parser.parse_args()
    warm(TOKENIZER)
    print("| tokens | mode | after | messages cut | ms | CPU ms | peak MiB |")
    print("|--:|---|--:|--:|--:|--:|--:|")
    for size in map(int, options.sizes.split(",")):
        for name, config in CONFIGS.items():
            strategy = Truncation(config, Summarizers(LocalSummarizer()))
            found = await measure(task_of(size, strategy), strategy, options.rounds)
            print(
                f"| {found['tokens']:,} | {name} | {found['after']:,} | {found['edits']:,} | "
                f"{found['clock']:.0f} | {found['cpu']:.0f} | {found['peak']:.1f} |"
            )


if __name__ == "__main__":
    asyncio.run(main())
