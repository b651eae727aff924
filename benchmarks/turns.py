"""What a turn costs as the history grows: append a question and an answer, prepare the next view.

    python benchmarks/turns.py [--sizes 100,10000,100000,1000000] [--peer-size 100000]

The session lives in a SQLite file and is compressed as it grows, as in use; the summarizer is a
fake that answers at once, so that only enfold is measured. The peer is LangGraph with its SQLite
checkpointer, one invoke of a graph whose model answers at once.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import enfold
from enfold.engine import Engine, Session
from enfold.testing import ScriptedSummarizer, assistant, user

sys.path.insert(0, str(Path(__file__).parent))
from peers import LANGGRAPH

WORDS = 20
BATCH = 10_000
MODEL = "bench:model"
TURNS = 50
SHOWN = 100
"""Messages in the view when a turn is measured, whatever the history's length."""


def message(number: int) -> enfold.Message:
    """One of a conversation's messages."""
    if number % 2 == 0:
        return user(f"{number} " + "alpha " * WORDS)
    return assistant(f"{number} " + "beta " * WORDS)


async def grow(session: Session, size: int, target: int) -> None:
    """Add messages up to the target, compressing on the way."""
    for start in range(size, target, BATCH):
        stop = min(start + BATCH, target)
        await session.append(*(message(number) for number in range(start, stop)))
        if stop - start > SHOWN:
            await session.compress(keep_tokens=SHOWN * (WORDS + 8))


async def measure(session: Session, size: int) -> dict[str, float]:
    """Median seconds of a prepare, and of an append with a prepare."""
    prepares: list[float] = []
    turns: list[float] = []
    for turn in range(TURNS):
        started = time.perf_counter()
        await session.append(message(size + 2 * turn), message(size + 2 * turn + 1))
        middle = time.perf_counter()
        await session.prepare("And now?")
        ended = time.perf_counter()
        prepares.append(ended - middle)
        turns.append(ended - started)
    return {"prepare": statistics.median(prepares), "turn": statistics.median(turns)}


async def run(sizes: list[int], folder: str) -> dict[int, dict[str, float]]:
    """Every size in one session each, so that the views are alike."""
    results: dict[int, dict[str, float]] = {}
    for size in sizes:
        file = Path(folder) / f"{size}.db"
        summarizers = {"fake": ScriptedSummarizer("They talked.")}
        async with enfold.open(f"sqlite:///{file}", sink=ignore, summarizers=summarizers) as engine:
            results[size] = await of_size(engine, size)
    return results


async def of_size(engine: Engine, size: int) -> dict[str, float]:
    """A session of that many messages, built and measured."""
    await engine.models.edit(MODEL, max_input=200_000, max_output=50_000)
    await engine.set("summarizer", "fake")
    session = await engine.session("bench", model=MODEL)
    started = time.perf_counter()
    await grow(session, 0, size)
    print(f"{size:,} messages built in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return await measure(session, size)


async def ignore(_deliveries: object) -> None:
    """A memory that keeps nothing: not what is measured here."""


def main() -> None:
    """Print a table and one line for the peer."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="100,10000,100000,1000000")
    parser.add_argument("--peer-size", type=int, default=100_000)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        results = asyncio.run(run(sizes, folder))
    base = results[sizes[0]]
    print("| messages | prepare | against the first | append + prepare |")
    print("|---:|---:|---:|---:|")
    for size, result in results.items():
        ratio = result["prepare"] / base["prepare"]
        print(
            f"| {size:,} | {result['prepare'] * 1e3:.2f} ms | {ratio:.2f} | "
            f"{result['turn'] * 1e3:.2f} ms |"
        )
    peer = LANGGRAPH.run(str(options.peer_size), str(WORDS))
    print()
    if isinstance(peer, str):
        print(f"LangGraph with SQLite: {peer}")
        return
    nearest = min(results, key=lambda size: abs(size - options.peer_size))
    print(
        f"LangGraph with SQLite at {options.peer_size:,} messages: {peer['seconds'] * 1e3:,.0f} ms "
        f"a turn, {peer['bytes_per_turn'] / 1e6:,.1f} MB of growth; "
        f"enfold is {peer['seconds'] / results[nearest]['turn']:,.0f} times as fast"
    )


if __name__ == "__main__":
    main()
