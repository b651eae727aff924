"""Does any recorded conversation raise an error or block a session with the built-in summarizer?

    python benchmarks/sweep.py [--data FOLDER] [--seconds 600] [--seed 1]

Conversations of all files, in random order, are condensed by every strategy to 10 and 40 % of their
tokens, and compressed in a stored session, until the time is up. Every failure is printed with its
conversation; the exit code is 1 if there is one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from collections import Counter
from pathlib import Path

import enfold
from enfold import wire
from enfold.errors import EnfoldError
from enfold.messages import Conversation
from enfold.transcripts import read

sys.path.insert(0, str(Path(__file__).parent))
from recorded import DATA

STRATEGIES = ("native", "lossless", "truncation", "smart")
SHARES = (0.1, 0.4)


async def main() -> int:
    """Run the sweep; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = [
        (f"{file.stem} {number}", transcript.conversation())
        for file in sorted(options.data.glob("*.jsonl"))
        for number, transcript in enumerate(read(file))
    ]
    random.Random(options.seed).shuffle(found)
    end = time.monotonic() + options.seconds
    runs: Counter[str] = Counter()
    failures = 0
    for name, conversation in found:
        if time.monotonic() > end:
            break
        runs["conversations"] += 1
        failures += await _condense(name, conversation, runs) + await _compress(name, conversation)
    print(f"{runs['conversations']} of {len(found)} conversations, {runs['runs']} runs without a "
          f"store; {failures} failures")  # fmt: skip
    return 1 if failures else 0


async def _condense(name: str, conversation: Conversation, runs: Counter[str]) -> int:
    value = wire.render(conversation)
    tokens = enfold.count(value)
    failures = 0
    for strategy in STRATEGIES:
        for share in SHARES:
            runs["runs"] += 1
            try:
                await enfold.condense(value, strategy=strategy, target=max(1, int(tokens * share)))
            except EnfoldError as error:
                failures += 1
                print(f"{name}, {strategy} to {share:.0%}: {type(error).__name__}: {error}")
    return failures


async def _compress(name: str, conversation: Conversation) -> int:
    async with enfold.open("sqlite:///:memory:") as engine:
        session = await engine.session("sweep")
        try:
            await session.append(*conversation.messages)
            await session.compress()
        except EnfoldError as error:
            print(f"{name}, stored: {type(error).__name__}: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
