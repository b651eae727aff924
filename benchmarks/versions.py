"""Two versions of enfold compared: the CPU time of counting, turns, compressions and strategies.

    python benchmarks/versions.py BEFORE AFTER [--rounds 5] [--core 0]

BEFORE and AFTER are checkouts of the repository. Each round runs both in processes of their own,
one after the other, on one core; the best round of each counts, as on a busy machine it is the
least disturbed one. Only the public library is called. A ratio above 1 says that AFTER is slower.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from conversations import agent, chat

HISTORY = 2_000
TURNS = 40
WINDOW = 60_000
LARGE = 4_000_000
COMPRESSIONS = 3


def main() -> None:
    """Print the table, or in a child process the times of one version."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        print(json.dumps(asyncio.run(work())))
        return
    before, after = options.checkouts
    best: dict[Path, dict[str, float]] = {before: {}, after: {}}
    for _ in range(options.rounds):
        for checkout in (before, after):
            for name, seconds in run(checkout, options.core).items():
                best[checkout][name] = min(seconds, best[checkout].get(name, seconds))
    print("| work | before, CPU ms | after, CPU ms | ratio |")
    print("|---|--:|--:|--:|")
    for name, first in best[before].items():
        second = best[after][name]
        print(f"| {name} | {first * 1_000:.2f} | {second * 1_000:.2f} | {second / first:.2f} |")


def run(checkout: Path, core: int) -> dict[str, float]:
    """Return the times of a version, measured in a process pinned to a core."""
    os.sched_setaffinity(0, {core})
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, __file__, "--work"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


async def work() -> dict[str, float]:
    """Return the best CPU seconds of each kind of work."""
    import enfold

    session_of = agent(260)
    enfold.count(session_of)

    seeds = iter(range(1, 1_000))
    times = {
        "counting, 600 messages not counted before": await best_of(
            lambda: chat(600, seed=next(seeds)), lambda given: _async(enfold.count, given)
        ),
        "lossless, 260 messages of an agent": await best_of(
            None, lambda _: enfold.condense(session_of, "lossless")
        ),
        "truncation, 260 messages of an agent": await best_of(
            None, lambda _: enfold.condense(session_of, "truncation")
        ),
        "native, 260 messages of an agent, a quarter": await best_of(
            None, lambda _: enfold.condense(session_of, "native", target=20_000)
        ),
    }
    async with enfold.open("sqlite:///:memory:") as engine:
        await engine.models.edit("versions:large", max_input=LARGE, max_output=1_000)
        session = await engine.session("long", model="versions:large")
        await session.append(*chat(HISTORY))

        async def turn(_: Any) -> None:
            for number in range(TURNS):
                await session.prepare(f"question {number}")

        times[f"{TURNS} turns without compression, {HISTORY:,} messages"] = await best_of(
            None, turn
        )
        await engine.models.edit("versions:small", max_input=WINDOW, max_output=1_000)
        sessions = []
        for number in range(COMPRESSIONS):
            short = await engine.session(f"short {number}", model="versions:small")
            await short.append(*agent(400, seed=number))
            sessions.append(short)
        left = iter(sessions)
        times["compression of a stored session, 400 messages"] = await best_of(
            lambda: next(left), lambda each: each.compress(force=True), rounds=COMPRESSIONS
        )
    return times


async def best_of(
    prepare: Callable[[], Any] | None, run: Callable[[Any], Awaitable[Any]], rounds: int = 4
) -> float:
    """Return the best CPU time; `prepare` makes the argument and is not timed."""
    found: list[float] = []
    for _ in range(rounds):
        given = prepare() if prepare else None
        started = time.process_time()
        await run(given)
        found.append(time.process_time() - started)
    return min(found)


async def _async(function: Callable[[Any], Any], given: Any) -> Any:
    return function(given)


if __name__ == "__main__":
    main()
