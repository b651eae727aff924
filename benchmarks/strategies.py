"""Strategies and presets on recorded conversations: reduction, speed, exact restoration.

    python benchmarks/strategies.py FILES [--conversations N]

Every result is restored and compared with the input, must have complete tool pairs, and must not be
larger; otherwise the run ends with an error. The built-in summarizer writes the summaries. The time
is that of the report, without the receipt.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import enfold
from enfold import wire as dialects
from enfold.history import orphans
from enfold.messages import Conversation
from enfold.tokens import warm
from enfold.transcripts import read

WAYS: Mapping[str, Mapping[str, Any]] = {
    "native": {"strategy": "native"},
    "lossless": {"strategy": "lossless"},
    "truncation": {"strategy": "truncation"},
    "speed": {"preset": "speed"},
    "quality": {"preset": "quality"},
    "cost": {"preset": "cost"},
    "balanced": {"preset": "balanced"},
}


@dataclass
class Sum:
    """Sums of figures."""

    before: int = 0
    after: int = 0
    seconds: float = 0.0

    def add(self, other: Sum) -> None:
        """Return the sums of both."""
        self.before += other.before
        self.after += other.after
        self.seconds += other.seconds

    def __str__(self) -> str:
        if not self.before:
            return "–"
        return f"{1 - self.after / self.before:.0%}, {self.before / self.seconds / 1e6:.1f} Mtok/s"


async def measure(conversation: Conversation, how: Mapping[str, Any]) -> Sum:
    """Condense and restore one conversation."""
    wire = dialects.render(conversation)
    done = await enfold.condense(conversation, **how)
    report = done.report
    if enfold.restore(done.messages, done.ledger) != wire:
        sys.exit("restored, it is not what it was")
    if report.tokens_after > report.tokens_before:
        sys.exit(f"{report.tokens_before:,} tokens became {report.tokens_after:,}")
    after = dialects.parse(done.messages, conversation.dialect).messages
    if len(orphans(after)) > len(orphans(conversation.messages)):
        sys.exit("a tool call lost its result, or a result its call")
    return Sum(report.tokens_before, report.tokens_after, report.seconds)


async def main() -> None:
    """Print one table: the reduction and the speed."""
    parser = argparse.ArgumentParser(description="Compare strategies on conversations.")
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--conversations", type=int, default=None, help="of each file")
    options = parser.parse_args()
    warm()
    print(f"| file | tokens | {' | '.join(WAYS)} |")
    print(f"|---|--:|{'--:|' * len(WAYS)}")
    total = {name: Sum() for name in WAYS}
    for file in options.files:
        sums = {name: Sum() for name in WAYS}
        for transcript in islice(read(file), options.conversations):
            conversation = transcript.conversation()
            for name, how in WAYS.items():
                sums[name].add(await measure(conversation, how))
        for name, found in sums.items():
            total[name].add(found)
        _print(file.stem, sums)
    _print("all", total)


def _print(name: str, sums: Mapping[str, Sum]) -> None:
    tokens = max(found.before for found in sums.values())
    print(f"| {name} | {tokens:,} | {' | '.join(map(str, sums.values()))} |", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
