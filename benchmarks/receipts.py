"""The time of a receipt, and the share of exact items that summaries keep.

    python benchmarks/receipts.py [--data FOLDER] [--tokens 1000000] [--share 0.5]

First the time to find the items of generated conversations of growing length, and to make a receipt
of them. Then every set of recorded conversations, condensed by the native strategy and the local
summarizer, as for a door that cannot restore anything: the share of each class, of user messages
and of decisions that the summary keeps, and the number of summaries below the floors, with and
without a way to restore. The floors were chosen by these figures.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from enfold import wire
from enfold.condensation import Condensation, Plan, receipt_for
from enfold.errors import EnfoldError
from enfold.messages import Message
from enfold.pipeline import Request, make_plan
from enfold.receipt import ItemCount, Receipt, make_receipt, shortfalls
from enfold.retention import Retention
from enfold.settings import Settings
from enfold.text.grammar import ITEM_CLASSES
from enfold.text.items import extract
from enfold.tokens import count_messages
from enfold.transcripts import read
from enfold.view import View
from enfold.wiring import local_summarizer, make_strategy

sys.path.insert(0, str(Path(__file__).parent))
from conversations import mixed
from recorded import DATA

Result = TypeVar("Result")

TOKENIZER = "o200k_base"
SHORTEST = 8
"""Fewest messages of a measured conversation."""


def speed(tokens: int) -> None:
    """Print the time of items and receipts by length."""
    print("| tokens | items of the text | per 1M tokens | receipt | items |")
    print("|---:|---:|---:|---:|---:|")
    for size in (tokens // 4, tokens // 2, tokens):
        messages = wire.parse(mixed(size)).messages
        counted = sum(count_messages(messages, TOKENIZER))
        text = "\n".join(str(part) for message in messages for part in message.parts)
        found, seconds = _timed(partial(extract, text))
        half = len(messages) // 2
        _, whole = _timed(partial(make_receipt, messages[:half], messages[half:]))
        print(
            f"| {counted:,} | {seconds:.2f} s | {seconds * 1e6 / counted:.2f} s | {whole:.2f} s | "
            f"{sum(map(len, found.values())):,} |"
        )


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result and the CPU seconds."""
    started = time.process_time()
    return work(), time.process_time() - started


def kept(folder: Path, share: float) -> None:
    """Print the shares that summaries keep, by set."""
    print(f"| set | summaries | {' | '.join(ITEM_CLASSES)} | said | below | below, restorable |")
    print(f"|---|---:|{'---:|' * (len(ITEM_CLASSES) + 3)}")
    everything: list[tuple[Plan, Condensation]] = []
    for file in sorted(folder.glob("*.jsonl")):
        made = list(condensed(file, share))
        if made:
            print(_row(file.stem, made), flush=True)
            everything += made
    print(_row("all", everything))


def condensed(file: Path, share: float) -> Iterator[tuple[Plan, Condensation]]:
    """Condense every conversation of the file to this share."""
    strategy = make_strategy(Settings(), local_summarizer())
    for transcript in read(file):
        messages = transcript.conversation().messages
        if len(messages) < SHORTEST:
            continue
        task = plan_for(messages, share)
        try:
            answer = asyncio.run(strategy.condense(task))
        except EnfoldError as error:
            print(f"{file.stem}: {error}", file=sys.stderr)
            continue
        if answer.summary is not None:
            yield task, answer


def plan_for(messages: tuple[Message, ...], share: float) -> Plan:
    """Return the default plan: the first message and the last three stay."""
    counts = tuple(count_messages(messages, TOKENIZER))
    goal = max(1, int(sum(counts) * share))
    strategy = make_strategy(Settings(), local_summarizer())
    view = View.of(messages, counts, TOKENIZER)
    retention = Retention("messages", 3, 1)
    return make_plan(Request(view, strategy, retention, goal, restorable_by=None))


def _row(name: str, made: Iterable[tuple[Plan, Condensation]]) -> str:
    totals: Counter[str] = Counter()
    there: Counter[str] = Counter()
    below = Counter[str]()
    number = 0
    for task, answer in made:
        number += 1
        bare = receipt_for(task, answer)
        stored = receipt_for(replace(task, restorable_by="store"), answer)
        for kind, count in bare.counts.items():
            _add(totals, there, kind, count)
        for count in bare.stated.values():
            _add(totals, there, "said", count)
        below["bare"] += _is_below(bare, task)
        below["stored"] += _is_below(stored, task)
    shares = (
        f"{there[kind] / totals[kind]:.0%} of {totals[kind]:,}" if totals[kind] else "-"
        for kind in (*ITEM_CLASSES, "said")
    )
    return f"| {name} | {number} | {' | '.join(shares)} | {below['bare']} | {below['stored']} |"


def _add(totals: Counter[str], there: Counter[str], kind: str, count: ItemCount) -> None:
    totals[kind] += count.total
    there[kind] += count.kept


def _is_below(made: Receipt, task: Plan) -> bool:
    return bool(shortfalls(made, summary_tokens=task.summary_tokens))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--share", type=float, default=0.5)
    options = parser.parse_args()
    speed(options.tokens)
    print()
    if not options.data.is_dir():
        print(f"no conversations in {options.data}; name a folder of .jsonl files with --data")
        return
    kept(options.data, options.share)


if __name__ == "__main__":
    main()
