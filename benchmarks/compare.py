"""enfold beside the libraries that people would take instead: one run, side by side.

    python benchmarks/compare.py [--works count,turn,fold,prune,proxy] [--sizes 100,1000,…]

It prints Markdown, and writes it to docs/benchmarks.md with a chart beside it if all was measured.

Every contender has a process of its own, and each peer library an environment of its own, installed
at the first run. Times are those of all cores together, so that other work on the machine counts as
little as it can; what to compare are the ratios. A peer that cannot be installed, fails, or takes
too long is reported as such.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import proxy
from chart import draw
from conversations import Message, agent, chat
from peers import PEERS, SCRIPTS, run_script
from recorded import longest_session

import enfold

LIMIT = 90.0
"""Seconds that one contender may take for one size, its preparations included."""
PATIENCE = 900.0
"""And enfold, which writes a million messages to a file before its turn is measured."""
POOL = 2_000
PRUNED = 1_000_000
"""Tokens of the transcript that is pruned."""
RECORDED = 4_000_000
"""Characters of the recorded transcript at most."""
SMALLEST = {"count": 100, "turn": 100, "fold": 1_000}
"""A fold needs more than what stays."""
LARGEST = {"count": 100_000, "turn": 1_000_000, "fold": 100_000}
PROXY_SECONDS, PROXY_REQUESTS = 5.0, 100_000
DOCS = Path(__file__).parent.parent / "docs"
OURS = [sys.executable, str(SCRIPTS / "enfold_work.py")]

Outcome = dict[str, Any] | str
"""What was measured, or why it was not."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of doing a work."""

    name: str
    command: list[str]
    limit: float = LIMIT

    def work(self, work: str, file: Path) -> Outcome:
        """Let it work on the messages in a file."""
        return run_script([*self.command, work, self.name, str(file)], self.limit)


@dataclass
class Contenders:
    """Who takes part, and who could not."""

    of: dict[str, list[Contender]] = field(default_factory=dict)
    """By work; enfold's first."""
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, command: list[str], limit: float = LIMIT) -> None:
        """All contenders of a script."""
        listed = run_script([*command, "list"], LIMIT)
        if isinstance(listed, str):
            self.missing[name] = listed
            return
        for work, names in listed.items():
            self.of.setdefault(work, []).extend(Contender(each, command, limit) for each in names)


def gather() -> Contenders:
    """Enfold and every peer that can be had."""
    found = Contenders()
    found.add("enfold", OURS, PATIENCE)
    for peer in PEERS:
        python = peer.environment()
        if isinstance(python, str):
            found.missing[peer.name] = python
        else:
            found.add(peer.name, [str(python), str(SCRIPTS / peer.script)])
    return found


def conversation(size: int) -> list[Message]:
    """So many messages of a chat: a generated stretch, over and over, with other numbers in it."""
    pool = chat(POOL + 1)[1:]
    return [
        {**pool[number % POOL], "content": f"{number}. {pool[number % POOL]['content']}"}
        for number in range(size)
    ]


def grown(
    contenders: Sequence[Contender], work: str, sizes: Sequence[int], folder: Path
) -> dict[str, dict[int, Outcome]]:
    """Every contender on every size, until one is too much for it."""
    results: dict[str, dict[int, Outcome]] = {each.name: {} for each in contenders}
    for size in sizes:
        file = folder / f"{size}.json"
        if not file.exists():
            file.write_text(json.dumps(conversation(size)), encoding="utf-8")
        for contender in contenders:
            earlier = results[contender.name]
            if any(isinstance(outcome, str) for outcome in earlier.values()):
                continue
            print(f"  {work}: {contender.name}, {size:,} messages", file=sys.stderr)
            earlier[size] = contender.work(work, file)
    return results


def growth(results: Mapping[int, Outcome]) -> str:
    """How time grows with the history, from a thousand messages on."""
    measured = [
        (math.log(size), math.log(max(1e-6, outcome["seconds"])))
        for size, outcome in results.items()
        if not isinstance(outcome, str) and size >= 1_000
    ]
    if len(measured) < 2:
        return "unknown"
    mean_x = sum(x for x, _ in measured) / len(measured)
    mean_y = sum(y for _, y in measured) / len(measured)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in measured) / sum(
        (x - mean_x) ** 2 for x, _ in measured
    )
    names = ((0.2, "flat"), (0.75, "slower than linear"), (1.3, "linear"), (1.7, "above linear"))
    named = next((name for most, name in names if slope < most), "quadratic")
    return f"{named} ({slope:+.2f})"


def tell_growth(
    results: Mapping[str, Mapping[int, Outcome]],
    further: Mapping[str, Callable[[dict[str, Any]], str]],
) -> Iterator[str]:
    """A table: time by size, the ratio at the largest size that both did, and how it grows."""
    sizes = sorted({size for each in results.values() for size in each})
    heads = [f"{size:,}" for size in sizes]
    yield "| | " + " | ".join([*heads, "× enfold", "growth", *further]) + " |"
    yield "|---|" + "--:|" * (len(sizes) + 1) + "---|" * (1 + len(further))
    ours = results["enfold"]
    for name, outcomes in results.items():
        cells = [_milliseconds(outcomes.get(size)) for size in sizes]
        done = [size for size, outcome in outcomes.items() if not isinstance(outcome, str)]
        last = outcomes[max(done)] if done else {}
        rest = [tell(last) if isinstance(last, dict) and last else "" for tell in further.values()]
        times = _ratio(outcomes, ours)
        yield f"| {name} | " + " | ".join([*cells, times, growth(outcomes), *rest]) + " |"


def _milliseconds(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    if isinstance(outcome, str):
        return outcome
    return _three_digits(outcome["seconds"] * 1e3)


def _ratio(theirs: Mapping[int, Outcome], ours: Mapping[int, Outcome]) -> str:
    for size in sorted(theirs, reverse=True):
        one, other = theirs[size], ours.get(size)
        if isinstance(one, dict) and isinstance(other, dict):
            return _three_digits(one["seconds"] / other["seconds"])
    return ""


def _three_digits(number: float) -> str:
    return f"{number:,.3g}" if abs(number) < 999.5 else f"{number:,.0f}"


def pruned_all(contenders: Sequence[Contender], folder: Path) -> Iterator[str]:
    """A generated transcript, and a recorded one where there is one."""
    file = folder / "agent.json"
    file.write_text(json.dumps(_transcript()), encoding="utf-8")
    yield from pruned(contenders, file)
    recorded = longest_session(RECORDED)
    if recorded is not None:
        file.write_text(json.dumps(recorded), encoding="utf-8")
        size = f"{len(recorded):,} messages, {enfold.count(recorded):,} tokens"
        yield f"\nThe longest recorded session of a coding agent that was at hand ({size}):\n"
        yield from pruned(contenders, file)


def pruned(contenders: Sequence[Contender], file: Path) -> Iterator[str]:
    """One long transcript of an agent, made smaller."""
    messages = json.loads(file.read_text(encoding="utf-8"))
    before = enfold.count(messages)
    lines = [set(_lines(message)) for message in messages]
    every = set().union(*lines)
    heads = ("seconds", "tokens gone", "lines still in view", "broken pairs", "made whole again")
    yield "| | " + " | ".join(heads) + " |"
    yield "|---|--:|--:|--:|--:|---|"
    for contender in contenders:
        print(f"  prune: {contender.name}", file=sys.stderr)
        outcome = contender.work("prune", file)
        if isinstance(outcome, str):
            yield f"| {contender.name} | {outcome} | | | | |"
            continue
        after = outcome["after"]
        seen = {line for message in after for line in _lines(message)}
        yield (
            f"| {contender.name} | {outcome['seconds']:.2f} "
            f"| {1 - enfold.count(after) / before:.1%} | {len(every & seen) / len(every):.0%} "
            f"| {_orphans(after)} | {'yes' if outcome['restored'] else 'no'} |"
        )


def _lines(message: Mapping[str, Any]) -> list[str]:
    content = message.get("content")
    return content.splitlines() if isinstance(content, str) else []


def _orphans(messages: Sequence[Mapping[str, Any]]) -> int:
    called = {call["id"] for each in messages for call in each.get("tool_calls") or ()}
    answered = {each.get("tool_call_id") for each in messages if each["role"] == "tool"}
    return len(called ^ answered)


TITLES = {
    "count": "Counting a history",
    "turn": "A turn, as the history grows",
    "fold": "One fold, without the model",
    "prune": "A transcript of an agent with a million tokens",
    "proxy": "A proxy in front of an upstream that does nothing",
}
NOTES = {
    "count": "Milliseconds of processor time. None of the texts was counted before.",
    "turn": (
        "Add a question and an answer, get what is to be sent: milliseconds of processor time. "
        "Everything but the newest hundred messages has been folded earlier, and nothing is left "
        "to do for that. The last column says where the folded messages are: in a file, in this "
        "process only, or nowhere any more."
    ),
    "fold": (
        "Milliseconds of processor time, with a model that answers at once; the newest 30,000 "
        "tokens stay. enfold's time has in it that the result is checked, that a ledger is "
        "written which restores the input exactly, and a receipt of what is kept."
    ),
    "prune": (
        "Generated; recorded sessions repeat less (benchmarks/lossless.py has many). Made whole "
        "again: the input was restored from the result, byte for byte."
    ),
    "proxy": (
        "One core for the proxy. Latency is that of one request after the other, throughput that "
        "of 32 at a time; the history is known from the second request on, as in use."
    ),
}
FURTHER: dict[str, dict[str, Callable[[dict[str, Any]], str]]] = {
    "count": {"tokens": lambda last: f"{last['tokens']:,}"},
    "turn": {
        "sent": lambda last: f"{last['sent']:,}",
        "history": lambda last: str(last["history"]),
    },
    "fold": {
        "sent": lambda last: f"{last['sent']:,}",
        "peak memory": lambda last: f"{last['peak'] / 2**20:,.0f} MiB",
    },
}
HEAD = """\
# Benchmarks

enfold beside the libraries that people would take instead, in one run: `make bench`. Compare the
ratios: times are those of one machine. A peer that could not take part is named at the end.

![What a turn costs as the history grows](benchmarks.svg)
"""


def report(works: Sequence[str], sizes: Sequence[int], chart: Path) -> Iterator[str]:
    """Everything, as Markdown; the chart is written on the way."""
    yield HEAD
    found = gather()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for work in works:
            yield f"## {TITLES[work]}\n\n{NOTES[work]}\n"
            if work == "proxy":
                yield from proxy.report(PROXY_SECONDS, PROXY_REQUESTS, peers=True)
            elif work == "prune":
                yield from pruned_all(found.of[work], folder)
            else:
                most = [size for size in sizes if SMALLEST[work] <= size <= LARGEST[work]]
                results = grown(found.of[work], work, most, folder)
                yield from tell_growth(results, FURTHER[work])
                if work == "turn":
                    chart.write_text(_chart(results), encoding="utf-8")
            yield ""
    yield from (f"- {peer} took no part: {why}" for peer, why in found.missing.items())


def _transcript() -> list[Message]:
    messages = agent(3_000)
    while enfold.count(messages) < PRUNED:
        messages = agent(len(messages) * 5 // 4)
    return messages


def _chart(results: Mapping[str, Mapping[int, Outcome]]) -> str:
    lines = {
        name: [
            (float(size), outcome["seconds"] * 1e3)
            for size, outcome in outcomes.items()
            if not isinstance(outcome, str)
        ]
        for name, outcomes in results.items()
    }
    drawn = {name: line for name, line in lines.items() if line}
    return draw("What a turn costs as the history grows", drawn, "messages", "ms of CPU a turn")


def main() -> None:
    """Print the report; a whole one is also what the documentation shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--works", default=",".join(TITLES))
    parser.add_argument("--sizes", default="100,1000,10000,100000,1000000")
    options = parser.parse_args()
    works = options.works.split(",")
    sizes = [int(size) for size in options.sizes.split(",")]
    is_whole = works == list(TITLES)
    with tempfile.TemporaryDirectory() as folder:
        chart = (DOCS if is_whole else Path(folder)) / "benchmarks.svg"
        lines = []
        for line in report(works, sizes, chart):
            print(line, flush=True)
            lines.append(line)
    if is_whole:
        (DOCS / "benchmarks.md").write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
