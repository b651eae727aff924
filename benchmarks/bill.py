"""The bill of agent sessions with prompt-cache prices, with and without enfold in between.

    python benchmarks/bill.py [--turns 200] [--windows 100000,200000] [--sessions N] [--half NAME]

Recorded agent sessions (benchmarks/recorded.py; generated ones without them) are sent through the
proxy request by request, as a coding agent sends them: the whole history each time. Sessions of one
file follow each other until there are enough turns. The client's model writes the summaries, and is
billed for them. The provider caches what it was sent: tokens that begin a request as they began an
earlier one are billed as cache reads, others as cache writes. Requests come 20 s apart, and after
every fortieth the session is idle for ten minutes, so that the cache is gone. Without enfold every
request holds the whole history, however long that is.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import conversations as generated
from recorded import AGENTS, DATA
from recorded import conversations as recorded
from simulated_proxy import Provider, is_summary, is_transcript, send, summary_of

import enfold
from enfold import wire
from enfold.jsontext import dumps, loads
from enfold.llm.costs import BilledTokens, Prices, cost_of
from enfold.messages import Conversation
from enfold.server.proxy.background import CACHE_SECONDS, BackgroundCompressions
from enfold.server.proxy.routes import Proxy
from enfold.tokens import count_conversation

MODEL = "claude-sonnet-4-5"
PRICES = Prices(input=3.0, output=15.0, cache_writes=3.75, cache_reads=0.30)
"""US dollars per million tokens, as published for the model."""
SYSTEM = "You are a coding agent. Work in small steps and keep to the rules. " * 300
TOOLS = [{"name": "run", "description": "Run it.", "input_schema": {"type": "object"}}]
SECONDS, IDLE_SECONDS, IDLE_EVERY = 20.0, 600.0, 40
REPLY_TOKENS = 300


@dataclass
class Clock:
    """The time of the simulation, in seconds."""

    now: float = 0.0
    timers: list[Timer] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call a function after a delay of the clock, unless it is cancelled."""
        self.timers.append(Timer(self.now + seconds, call))
        return self.timers[-1]

    def next_timer(self, until: float) -> Timer | None:
        """Go on to the next timer before a time, and return it; None if there is none."""
        self.timers = [each for each in self.timers if not each.is_over]
        due = min((each for each in self.timers if each.at < until), default=None, key=_time_of)
        self.now = until if due is None else due.at
        return due


@dataclass
class Timer:
    """A call at a time of the simulation."""

    at: float
    call: Callable[[], None]
    is_over: bool = False

    def cancel(self) -> None:
        """Call nothing."""
        self.is_over = True

    def run(self) -> None:
        """Call the function."""
        self.is_over = True
        self.call()


def _time_of(timer: Timer) -> float:
    return timer.at


class Bill:
    """Adds up what the requests of one session cost."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cached: Sequence[bytes] = ()
        self._at = -CACHE_SECONDS
        self.dollars = 0.0
        self.longest = 0

    def add_arrived(self, provider: Provider) -> None:
        """Bill what reached the provider, in that order."""
        for request in provider.arrived:
            output = REPLY_TOKENS
            if is_summary(request):
                output = _tokens(summary_of(request).encode())
            if is_transcript(request):
                self.add_transcript(request.raw, output)
            else:
                self.add(request.raw, output, is_summary=is_summary(request))
        provider.arrived.clear()

    def add_transcript(self, raw: bytes, output: int) -> None:
        """Bill a summary request that shares nothing with the conversation."""
        billed = BilledTokens(_tokens(raw), output)
        self.dollars += cost_of(PRICES, billed).total or 0.0

    def add(self, raw: bytes, output: int = REPLY_TOKENS, *, is_summary: bool = False) -> None:
        """Bill a request by the messages that the provider has not cached."""
        body = loads(raw)
        parts = [dumps(body["system"]), dumps(body["tools"]), *map(dumps, body["messages"])]
        sizes = [_tokens(part) for part in parts]
        is_warm = self._clock.now - self._at < CACHE_SECONDS
        same = takewhile(lambda pair: pair[0] == pair[1], zip(parts, self._cached, strict=False))
        cached = len(list(same)) if is_warm else 0
        reads, writes = sum(sizes[:cached]), sum(sizes[cached:])
        billed = BilledTokens(0, output, writes, reads)
        self.dollars += cost_of(PRICES, billed).total or 0.0
        self.longest = max(self.longest, reads + writes)
        self._at = self._clock.now
        if not is_summary:
            self._cached = parts


_counts: dict[bytes, int] = {}


def _tokens(part: bytes) -> int:
    if part not in _counts:
        _counts[part] = count_conversation(
            wire.parse([{"role": "user", "content": part.decode()}], "openai"), "o200k_base"
        ).total
    return _counts[part]


def histories(turns: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield sessions of this many model calls, as `anthropic` messages."""
    by_file: dict[str, list[Any]] = {}
    if DATA.is_dir():
        for name in AGENTS:
            by_file[name] = [each for _, each in recorded([name])]
    else:
        for seed in range(4):
            raw = generated.agent(400_000, seed=seed)
            by_file[f"generated {seed}"] = [wire.parse(raw, "openai")]
    for name, found in by_file.items():
        messages: list[Any] = []
        for each in found:
            messages += _messages(each)
            if sum(message["role"] == "assistant" for message in messages) >= turns:
                yield name, messages
                messages = []
        if sum(message["role"] == "assistant" for message in messages) >= turns // 2:
            yield name, messages


def _messages(conversation: Conversation) -> list[Any]:
    body = wire.render(conversation, "anthropic")
    found = body["messages"] if isinstance(body, dict) else body
    kept = [each for each in found if each["role"] in {"user", "assistant"}]
    return kept[
        : max((i for i, each in enumerate(kept) if each["role"] == "assistant"), default=-1) + 1
    ]


def requests(messages: Sequence[Any], turns: int) -> Iterator[bytes]:
    """Yield the request before every answer of the model."""
    static = {"model": MODEL, "max_tokens": 8_000, "system": SYSTEM, "tools": TOOLS}
    answers = [index for index, each in enumerate(messages) if each["role"] == "assistant"]
    for index in answers[:turns]:
        if index and messages[index - 1]["role"] == "user":
            yield dumps({**static, "messages": list(messages[:index])})


async def simulate(name: str, messages: list[Any], turns: int, window: int) -> tuple[Any, ...]:
    """Return the figures of one session with one window."""
    clock = Clock()
    plain, compressed = Bill(clock), Bill(clock)
    background = BackgroundCompressions(clock=clock, call_later=clock.call_later)
    with tempfile.TemporaryDirectory() as folder, Provider() as provider:
        async with enfold.open(f"sqlite:///{folder}/bill.db") as engine:
            await engine.models.edit(
                f"anthropic:{MODEL}", max_input=window - 8_000, max_output=8_000
            )
            await engine.set("proxy_client_key", value=True)
            await engine.set("timeout", 3_600)  # this machine may be busy
            proxy = Proxy(engine, provider.upstream(), _namespace, background=background)
            sent = 0
            for number, raw in enumerate(requests(messages, turns), start=1):
                plain.add(raw)
                await send(proxy, raw, f"session-of-{name}".replace(" ", "-"))
                await _settle(proxy, background, compressed, provider)
                pause = IDLE_SECONDS if number % IDLE_EVERY == 0 else SECONDS
                until = clock.now + pause
                while (timer := clock.next_timer(until)) is not None:
                    timer.run()
                    await _settle(proxy, background, compressed, provider)
                sent = number
            made = await _compressions(engine)
            await proxy.close()
    share = compressed.dollars / plain.dollars
    return (name, window, sent, plain.longest, made, plain.dollars, compressed.dollars, share)


async def _settle(
    proxy: Proxy, background: BackgroundCompressions, bill: Bill, provider: Provider
) -> None:
    """Wait until nothing runs, and bill what reached the provider."""
    await proxy.idle()
    await background.idle()
    bill.add_arrived(provider)


async def _compressions(engine: enfold.Engine) -> int:
    total = 0
    for record in await engine.sessions():
        session = await engine.find(record.id)
        total += len(await session.summaries())
    return total


async def _namespace(_scope: object) -> str:
    return ""


HALVES = ("tuning", "reporting")
"""Settings are chosen with the sessions of the first half; the second says what they are worth."""


async def main(turns: int, windows: Sequence[int], most: int, halves: Sequence[str]) -> None:
    """Print a row for each session and window, then the totals of each half."""
    print(
        "| half | session | window | requests | longest history | compressions | without | with "
        "| share |"
    )
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    rows: list[tuple[str, tuple[Any, ...]]] = []
    for number, (name, messages) in enumerate(list(histories(turns))[:most]):
        half = HALVES[number % 2]
        for window in windows if half in halves else ():
            row = await simulate(f"{name} {number}", messages, turns, window)
            rows.append((half, row))
            _counts.clear()
            label, size, sent, longest, made, before, after, share = row
            print(
                f"| {half} | {label} | {size:,} | {sent} | {longest:,} | {made} | ${before:.2f} "
                f"| ${after:.2f} | {share:.0%} |",
                flush=True,
            )
    for half in halves:
        outgrown = [row for each, row in rows if each == half and row[3] > row[1]]
        others = [row for each, row in rows if each == half and row[3] <= row[1]]
        for label, group in (("outgrow the window", outgrown), ("fit", others)):
            if group:
                before, after = sum(row[5] for row in group), sum(row[6] for row in group)
                worst = max(row[7] for row in group)
                part = f"{after / before:.0%} of the bill, at most {worst:.0%}"
                print(f"\n{half}: {len(group)} that {label}: {part}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--windows", default="100000,200000")
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--half", choices=HALVES, default=None)
    options = parser.parse_args()
    sizes = [int(each) for each in options.windows.split(",")]
    chosen = HALVES if options.half is None else (options.half,)
    asyncio.run(main(options.turns, sizes, options.sessions, chosen))
