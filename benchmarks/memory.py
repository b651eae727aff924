"""Peak memory of a condensation, as a multiple of the conversation's text.

    python benchmarks/memory.py [FILES] [--messages N] [--ways native,balanced]

Without files it measures generated conversations, with files the largest conversation of each. The
text is all strings of the messages in UTF-8. The first figure is the peak of one call above what
was there before, with empty memos of token counts; the second is without what the call leaves in
memos after its result is dropped. Those are shared by all calls and bounded. Memory that libraries
in other languages take is not measured.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import enfold
from enfold.jsontext import dumps, loads
from enfold.strategies import contract
from enfold.tokens import DEFAULT, get, warm
from enfold.tokens.tokenizers import Memo

sys.path.insert(0, str(Path(__file__).parent))
from conversations import agent, chat

WAYS = ("truncation", "lossless", "native", "balanced", "quality", "cost", "agent")
"""Strategies, and presets of the strategy smart."""
FEW = 40
"""Messages of a conversation that loads all modules."""


class Peak(NamedTuple):
    """The peak of one call, in bytes."""

    total: int
    without_memos: int


def size_of(value: Any) -> int:
    """Return the bytes of all strings in a JSON value."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(size_of, inner))


def measure(messages: list[Any], way: str) -> Peak:
    """Return the peak of one condensation that finds no counts in memos."""
    how: dict[str, Any] = {"strategy" if way in contract.names() else "preset": way}
    asyncio.run(enfold.condense(agent(FEW), **how))
    setattr(get(DEFAULT), "_memo", Memo())  # noqa: B010 - a benchmark may reach in
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    done = asyncio.run(enfold.condense(messages, **how))
    _, peak = tracemalloc.get_traced_memory()
    del done
    gc.collect()
    left, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Peak(peak - before, peak - left)


def conversations(files: list[Path], messages: int) -> Iterator[tuple[str, list[Any]]]:
    """Yield the conversations with their names."""
    if not files:
        yield "agent", agent(messages)
        yield "chat", chat(messages)
    for file in files:
        found = [loads(line)["messages"] for line in file.open("rb")]
        yield file.stem, max(found, key=size_of)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description="Measure the peak memory of strategies.")
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--messages", type=int, default=6_000)
    parser.add_argument("--ways", default=",".join(WAYS))
    options = parser.parse_args()
    warm()
    ways = options.ways.split(",")
    print(f"| conversation | messages | MiB of text | {' | '.join(ways)} |")
    print(f"|---|--:|--:|{'--:|' * len(ways)}")
    for name, messages in conversations(options.files, options.messages):
        # Parsed from JSON, so that equal texts are objects of their own, as a program has them.
        parsed = loads(dumps(messages))
        size = size_of(parsed)
        peaks = [measure(parsed, way) for way in ways]
        cells = [f"{p.total / size:.1f} × ({p.without_memos / size:.1f} ×)" for p in peaks]
        row = (name, f"{len(parsed):,}", f"{size / 2**20:.1f}", *cells)
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
