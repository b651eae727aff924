"""The time that clients wait for the proxy while a slow model writes the summaries.

    python benchmarks/waits.py [--sessions 50] [--turns 20] [--summary-seconds 30]
        [--turn-seconds 8]

Sessions grow at the same time, each past the threshold of its model's window. The provider answers
at once, so the time of a request is the time that the proxy adds. Times are real: the summarizer
sleeps, and every client pauses between its requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from conversations import Author
from simulated_proxy import Provider, send

import enfold
from enfold.server.proxy.routes import Proxy
from enfold.server.serve import SWITCH_SECONDS
from enfold.summaries import Summary, SummaryRequest
from enfold.tokens import get

MODEL = "claude-sonnet-4-5"
WINDOW, REPLY = 40_000, 4_000
FIRST_SHARES, TURN_SHARE = (0.45, 0.6), 0.015
"""The history at the first request and what each turn adds, as shares of the window."""
TOKENS_PER_WORD = 2.2
"""Of the generated text, in the model's tokens."""
TEXT = "Older steps were summarized: files were read, commands were run, the work goes on. " * 20


@dataclass
class SlowSummarizer:
    """Takes its time."""

    seconds: float
    name: str = "slow"
    max_input: int | None = None
    written: int = 0

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return a summary after the pause."""
        await asyncio.sleep(self.seconds)
        self.written += 1
        return Summary(TEXT, self.name, get(request.tokenizer).count(TEXT))


@dataclass
class Client:
    """One agent: it sends its whole history with every request."""

    number: int
    author: Author
    messages: list[Any] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    largest: int = 0

    def add(self, words: int) -> None:
        """Add an exchange of this many words."""
        text = " ".join(self.author.words(words))
        self.messages += [
            {"role": "user", "content": f"Step {len(self.messages)}: {text}"},
            {"role": "assistant", "content": f"Done with step {len(self.messages)}."},
        ]

    async def run(self, proxy: Proxy, turns: int, seconds: float) -> None:
        """Send requests until there were enough."""
        await asyncio.sleep(random.uniform(0, seconds))
        share = random.uniform(*FIRST_SHARES)
        for _ in range(20):
            self.add(int(WINDOW * share / TOKENS_PER_WORD / 20))
        for _ in range(turns):
            self.add(int(WINDOW * TURN_SHARE / TOKENS_PER_WORD))
            body = {"model": MODEL, "max_tokens": REPLY, "messages": self.messages[:-1]}
            body |= {"system": "Work.", "tools": []}
            raw = json.dumps(body).encode()
            begin = perf_counter()
            headers = await send(proxy, raw, f"session-number-{self.number:04}")
            self.waits.append(perf_counter() - begin)
            self.largest = max(self.largest, int(headers["x-enfold-tokens-after"]))
            await asyncio.sleep(random.uniform(0.8, 1.2) * seconds)


async def main(sessions: int, turns: int, summary: float, pause: float) -> None:
    """Run all clients and print the figures."""
    sys.setswitchinterval(SWITCH_SECONDS)  # as the server does
    slow = SlowSummarizer(summary)
    clients = [Client(number, Author(number)) for number in range(sessions)]
    with tempfile.TemporaryDirectory() as folder, Provider() as provider:
        url = f"sqlite:///{folder}/waits.db"
        async with enfold.open(url, summarizers={"slow": slow}) as engine:
            await engine.models.edit(f"anthropic:{MODEL}", max_input=WINDOW, max_output=REPLY)
            await engine.set("summarizer", "slow")
            await engine.set("strategy", "native")
            model = await engine.models.get(f"anthropic:{MODEL}")
            proxy = Proxy(engine, provider.upstream(), _namespace)
            await asyncio.gather(*(each.run(proxy, turns, pause) for each in clients))
            await proxy.close()
    waits = sorted(wait * 1_000 for each in clients for wait in each.waits)
    cuts = quantiles(waits, n=100)
    largest = max(each.largest for each in clients)
    print(
        f"{len(waits):,} requests of {sessions} sessions, {slow.written} summaries of {summary:g} s"
    )
    print(
        f"added wait in ms: p50 {cuts[49]:.1f}, p90 {cuts[89]:.1f}, p99 {cuts[98]:.1f}, "
        f"longest {waits[-1]:.1f}"
    )
    print(f"longest request {largest:,} tokens; the model takes {model.limits.input:,}")
    print(
        f"requests that did not fit: {sum(each.largest > model.limits.input for each in clients)}"
    )


async def _namespace(_scope: object) -> str:
    return ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--summary-seconds", type=float, default=30.0)
    parser.add_argument("--turn-seconds", type=float, default=8.0)
    given = parser.parse_args()
    asyncio.run(main(given.sessions, given.turns, given.summary_seconds, given.turn_seconds))
