"""The regression guard: works that must not become much slower, as ratios to a fixed workload.

    python benchmarks/guard.py

Each work is measured in CPU time and divided by the time of a workload that never changes, so that
a slow or busy machine changes both. A ratio above its limit ends the run with an error. A limit is
about three times the ratio that was measured when it was set, so only large regressions fail.
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from conversations import agent, chat

import enfold
from enfold import tokens
from enfold.testing import ScriptedSummarizer

ROUNDS = 5
WORD = re.compile(r"\w+")

LIMITS = {
    "count 1,000 messages, none seen before": 9.0,
    "compress 1,000 messages without a model": 18.0,
    "truncate an agent's 1,000 messages": 40.0,
    "lossless, the same": 150.0,
    "a turn: append and prepare": 4.0,
    "enfold --help, a new process": 120.0,
}
"""Times of each work for one of the reference workload, at most."""


def reference() -> None:
    """The workload that never changes: a loop, JSON, and a regular expression."""
    total = 0
    for number in range(60_000):
        total += number % 7
    value = json.loads(json.dumps([{"n": n, "text": f"word {n} " * 4} for n in range(1_500)]))
    found = [WORD.findall(each["text"]) for each in value]
    if total + len(found) < 0:
        raise AssertionError


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the least CPU seconds of some rounds."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return min(taken)


def counting() -> float:
    """Return the time to count texts that no memo knows."""
    tokens.warm()
    new = iter(
        [
            [{**each, "content": f"{n} {each['content']}"} for each in chat(1_000)]
            for n in range(ROUNDS)
        ]
    )
    return best(lambda: enfold.count(next(new)))


def condensing(messages: list[dict[str, Any]], strategy: str, **options: Any) -> float:
    """Return the time of a condensation."""
    return best(lambda: enfold.condense_sync(messages, strategy, **options))


@contextmanager
def _session() -> Iterator[tuple[asyncio.Runner, Any]]:
    with tempfile.TemporaryDirectory() as folder, asyncio.Runner() as runner:
        opened = enfold.open(f"sqlite:///{folder}/s.db")
        engine = runner.run(opened.__aenter__())
        yield runner, runner.run(engine.session("guard"))
        runner.run(opened.__aexit__(None, None, None))


def turning() -> float:
    """Return the time of a turn of a stored session."""
    with _session() as (runner, session):
        runner.run(session.append(*chat(300)[1:]))

        async def turn() -> None:
            question = {"role": "user", "content": "What is left to do?"}
            await session.append(question, {"role": "assistant", "content": "The tests."})
            await session.prepare("And now?")

        return best(lambda: runner.run(turn()), rounds=4 * ROUNDS)


def starting() -> float:
    """Return the CPU time of a new process that prints the help."""

    def children() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    taken = []
    for _ in range(ROUNDS):
        started = children()
        command = [sys.executable, "-m", "enfold.cli", "--help"]
        subprocess.run(command, check=True, capture_output=True)
        taken.append(children() - started)
    return min(taken)


def measured() -> Iterator[tuple[str, float]]:
    """Yield each work with its CPU seconds."""
    talk, session = chat(1_000), agent(1_000)
    # Beginnings of messages: a text that shares nothing with its input is refused.
    beginnings = (each["content"][:80] for each in talk[1 : -1 : len(talk) // 12])
    instant = ScriptedSummarizer("\n".join(beginnings))
    names = iter(LIMITS)
    yield next(names), counting()
    yield next(names), condensing(talk, "native", keep_tokens=30_000, summarizer=instant)
    yield next(names), condensing(session, "truncation")
    yield next(names), condensing(session, "lossless")
    yield next(names), turning()
    yield next(names), starting()


def main() -> None:
    """Print the ratios; fail if one is above its limit."""
    before = best(reference)
    works = list(measured())
    unit = min(before, best(reference))
    slow = []
    print("| work | ms | × reference | limit |\n|---|--:|--:|--:|")
    for name, seconds in works:
        ratio = seconds / unit
        print(f"| {name} | {seconds * 1e3:.2f} | {ratio:.2f} | {LIMITS[name]:g} |")
        if ratio > LIMITS[name]:
            slow.append(name)
    if slow:
        sys.exit(f"much slower than before: {'; '.join(slow)}")


if __name__ == "__main__":
    main()
