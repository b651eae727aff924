"""Counting, compared with tiktoken: `python benchmarks/token_counts.py [--rounds N]`.

Both count the same texts in one run and take turns, so that other work on the machine slows both.
tiktoken receives plain texts and every core; enfold receives messages and extracts their texts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import string
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import reference
from conversations import mixed

from enfold.jsontext import dump_text, loads
from enfold.messages import Conversation, Message, Text, ToolCall, ToolResult
from enfold.tokens import count_conversation, count_message, get, warm
from enfold.tokens.counts import collect
from enfold.wire import openai

MILLION = 1_000_000
CORES = os.cpu_count() or 1

Result = TypeVar("Result")


@dataclass(frozen=True)
class Work:
    """The same work for both; `calls` is the number of repetitions."""

    name: str
    enfold: Callable[[], int]
    tiktoken: Callable[[], int] | None
    calls: int = 1


class Seconds(NamedTuple):
    """The time of one call: wall time, and CPU time of all cores."""

    clock: float
    cores: float


Measured = tuple[Seconds, Seconds | None]
"""Of enfold and of tiktoken."""


def main() -> None:
    """Do all works in rounds and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    _, loading = timed(warm)
    absent = reference.missing()
    peer = None if absent else reference.encoding("o200k_base")
    table: dict[str, list[Measured]] = {}
    for seed in range(rounds):
        for work in works(peer, seed):
            table.setdefault(work.name, []).append(measure(work, peer_first=seed % 2 == 1))
    print(f"o200k_base, the best of {rounds} rounds, {CORES} cores; milliseconds for one call.")
    print(f"Loading the library took enfold {loading.cores * 1_000:.0f} ms, once.")
    print(f"tiktoken: {absent or 'batches with a thread for each core'}.\n")
    print("| work | enfold | tiktoken | faster | enfold, CPU | tiktoken, CPU | less |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for name, measured in table.items():
        print(f"| {name} | {figures(measured, 'clock')} | {figures(measured, 'cores')} |")


def works(peer: Any, seed: int) -> Iterator[Work]:
    """Return the works; no text occurs in two rounds."""
    raw = json.dumps(mixed(MILLION, seed=seed))
    whole, again = (openai.parse(json.loads(raw)) for _ in range(2))
    batch = in_batch(peer, whole)
    yield Work("1M tokens, never seen", lambda: count_conversation(whole).total, batch)
    yield Work("the same messages again", lambda: count_conversation(whole).total, batch)
    yield Work("the same, parsed again", lambda: count_conversation(again).total, batch)
    tenth = openai.parse(mixed(MILLION // 10, seed=MILLION + seed))
    yield Work(
        "100,000 tokens, never seen (500 ms allowed)",
        lambda: count_conversation(tenth).total,
        in_batch(peer, tenth),
    )
    short = [Message("user", (Text(f"Is {seed} before {n}?"),)) for n in range(2_000)]
    yield one_by_one("one short message, never seen", peer, short)
    chat = openai.parse(mixed(MILLION // 10, seed=2 * MILLION + seed)).messages
    yield one_by_one("one message of a chat or agent, never seen", peer, chat)
    letters = "".join(random.Random(seed).choices(string.ascii_lowercase, k=MILLION))
    yield Work(
        "1 MB of letters without a space",
        lambda: get().count(letters),
        peer and (lambda: len(peer.encode_ordinary(letters))),
    )
    yield Work("1 MB of spaces (tiktoken panics)", lambda: get().count(" " * MILLION), None)


def in_batch(peer: Any, conversation: Conversation) -> Callable[[], int] | None:
    """Return the reference's count of a conversation, all texts in one call."""
    if peer is None:
        return None
    texts = [text for message in conversation.messages for text in texts_of(message)]
    structure = sum(collect(message.parts, defaultdict(list)) for message in conversation.messages)
    return lambda: structure + sum(map(len, peer.encode_ordinary_batch(texts, num_threads=CORES)))


def one_by_one(name: str, peer: Any, messages: Sequence[Message]) -> Work:
    """Count with one call per message."""
    texts = [text for message in messages for text in texts_of(message)]
    structure = sum(collect(message.parts, defaultdict(list)) for message in messages)
    return Work(
        name,
        lambda: sum(map(count_message, messages)),
        peer and (lambda: structure + sum(map(len, map(peer.encode_ordinary, texts)))),
        calls=len(messages),
    )


def texts_of(message: Message) -> Iterator[str]:
    """Return the texts of a generated message."""
    for part in message.parts:
        match part:
            case Text(text) | ToolResult(parts=(Text(text),)):
                yield text
            case ToolCall(name=name, arguments=str(arguments)):
                yield dump_text({"name": name, "arguments": loads(arguments)})


def measure(work: Work, *, peer_first: bool) -> Measured:
    """Measure both; raise an error if their counts differ."""
    contestants = [work.enfold] if work.tiktoken is None else [work.enfold, work.tiktoken]
    if peer_first:
        contestants.reverse()
    done = {count: timed(count, work.calls) for count in contestants}
    counts = {count for count, _ in done.values()}
    if len(counts) > 1:
        raise SystemExit(f"{work.name}: the counts differ, {sorted(counts)}")
    return done[work.enfold][1], done[work.tiktoken][1] if work.tiktoken else None


def timed(do: Callable[[], Result], calls: int = 1) -> tuple[Result, Seconds]:
    """Return the result and the time of one call."""
    clock, cores = time.perf_counter(), time.process_time()
    result = do()
    took = (time.perf_counter() - clock, time.process_time() - cores)
    return result, Seconds(took[0] / calls, took[1] / calls)


def figures(rounds: Sequence[Measured], kind: str) -> str:
    """Return the best round of each and the ratio; other work only makes a round slower."""
    ours = min(getattr(enfold, kind) for enfold, _ in rounds)
    theirs = [getattr(tiktoken, kind) for _, tiktoken in rounds if tiktoken is not None]
    if not theirs:
        return f"{ours * 1_000:,.4g} | – | –"
    return f"{ours * 1_000:,.4g} | {min(theirs) * 1_000:,.4g} | {min(theirs) / ours:,.1f} ×"


if __name__ == "__main__":
    main()
