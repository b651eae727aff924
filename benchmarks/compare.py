"""Compare enfold with other libraries in one run.

    python benchmarks/compare.py [--works count,compress,prune,turn,proxy] [--sizes 100,1000,…]
    python benchmarks/compare.py --quick

Prints Markdown. A run of all works also writes docs/benchmarks.md and its chart. `--quick` takes
about three minutes: small sizes, and only libraries that an earlier run installed.

Each contender has its own process, and each other library its own environment, installed at the
first run. Times are CPU times of all cores, to reduce the effect of other work on the machine;
compare the ratios. A library that cannot be installed, fails, or takes too long is reported. What
is left after `--minutes` is not measured, and the report says so.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import proxy
from chart import draw
from conversations import Message, agent, chat
from peers import PEERS, SCRIPTS, run_script
from recorded import longest_session

import enfold

LIMIT = 90.0
"""Time limit of a contender for one size in seconds, preparation included."""
PATIENCE = 900.0
"""The same for enfold, which writes a million messages to a file before its turn is measured."""
POOL = 2_000
PRUNED = 1_000_000
"""Tokens of the pruned transcript."""
RECORDED = 4_000_000
"""Maximum characters of the recorded transcript."""
SMALLEST = {"count": 100, "turn": 100, "compress": 1_000}
"""A compression needs more messages than those that stay."""
LARGEST = {"count": 100_000, "turn": 1_000_000, "compress": 100_000}
PROXY_SECONDS, PROXY_REQUESTS = 5.0, 100_000
MINUTES, QUICK_MINUTES = 30.0, 3.0
"""Time for measuring, without that for installing libraries."""
BEFORE_PROXIES = 0.7
"""The share of that time for all other works, if proxies are measured too."""
QUICK_LIMIT = 20.0
QUICK_SIZES = "100,1000,10000"
DOCS = Path(__file__).parent.parent / "docs"
OURS = [sys.executable, str(SCRIPTS / "enfold_work.py")]

Outcome = dict[str, Any] | str
"""The measured figures, or the reason why there are none."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One library doing one work."""

    name: str
    command: list[str]
    limit: float = LIMIT

    def work(self, work: str, file: Path, until: float) -> Outcome:
        """Run it on the messages of a file, if there is time left before `until`."""
        left = until - time.monotonic()
        if left <= 0:
            return "out of time"
        return run_script([*self.command, work, self.name, str(file)], min(self.limit, left))


@dataclass
class Contenders:
    """The libraries that are measured, and those that could not be."""

    of: dict[str, list[Contender]] = field(default_factory=dict)
    """By work; enfold is first."""
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, command: list[str], limit: float = LIMIT) -> None:
        """Add all contenders of a script."""
        listed = run_script([*command, "list"], LIMIT)
        if isinstance(listed, str):
            self.missing[name] = listed
            return
        for work, names in listed.items():
            self.of.setdefault(work, []).extend(Contender(each, command, limit) for each in names)


def gather(*, quick: bool) -> Contenders:
    """Return enfold and every library that can be installed; if `quick`, that is installed."""
    found = Contenders()
    found.add("enfold", OURS, PATIENCE)
    for peer in PEERS:
        python = peer.environment(installs=not quick)
        if isinstance(python, str):
            found.missing[peer.name] = python
        else:
            limit = QUICK_LIMIT if quick else LIMIT
            found.add(peer.name, [str(python), str(SCRIPTS / peer.script)], limit)
    return found


def conversation(size: int) -> list[Message]:
    """Return a chat of this many messages: a generated part, repeated with other numbers."""
    pool = chat(POOL + 1)[1:]
    return [
        {**pool[number % POOL], "content": f"{number}. {pool[number % POOL]['content']}"}
        for number in range(size)
    ]


def grown(
    contenders: Sequence[Contender], work: str, sizes: Sequence[int], folder: Path, until: float
) -> dict[str, dict[int, Outcome]]:
    """Measure every contender on every size, until a size is too large for it."""
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
            earlier[size] = contender.work(work, file, until)
    return results


def growth(results: Mapping[int, Outcome]) -> str:
    """Return how time grows with the history, from a thousand messages on."""
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
    """Yield a table: time by size, the ratio at the largest common size, and the growth."""
    sizes = sorted({size for each in results.values() for size in each})
    heads = [f"{size:,}" for size in sizes]
    yield "| | " + " | ".join([*heads, "× enfold", "growth", *further]) + " |"
    yield "|---|" + "--:|" * (len(sizes) + 1) + "---|" * (1 + len(further))
    ours = results.get("enfold", {})
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


def pruned_all(contenders: Sequence[Contender], folder: Path, until: float) -> Iterator[str]:
    """Yield the tables of a generated transcript and of a recorded one, if there is one."""
    file = folder / "agent.json"
    file.write_text(json.dumps(_transcript()), encoding="utf-8")
    yield from pruned(contenders, file, until)
    recorded = longest_session(RECORDED)
    if recorded is not None:
        file.write_text(json.dumps(recorded), encoding="utf-8")
        size = f"{len(recorded):,} messages, {enfold.count(recorded):,} tokens"
        yield f"\nThe longest recorded session of a coding agent in the data ({size}):\n"
        yield from pruned(contenders, file, until)


def pruned(contenders: Sequence[Contender], file: Path, until: float) -> Iterator[str]:
    """Yield a table of one long agent transcript, made smaller."""
    messages = json.loads(file.read_text(encoding="utf-8"))
    before = enfold.count(messages)
    lines = [set(_lines(message)) for message in messages]
    every = set().union(*lines)
    heads = ("seconds", "reduction", "lines in view", "broken pairs", "restored")
    yield "| | " + " | ".join(heads) + " |"
    yield "|---|--:|--:|--:|--:|---|"
    for contender in contenders:
        print(f"  prune: {contender.name}", file=sys.stderr)
        outcome = contender.work("prune", file, until)
        if isinstance(outcome, str):
            yield f"| {contender.name} | {outcome} | | | | |"
            continue
        after = outcome["after"]
        shown = {line for message in after for line in _lines(message)}
        yield (
            f"| {contender.name} | {outcome['seconds']:.2f} "
            f"| {1 - enfold.count(after) / before:.1%} | {len(every & shown) / len(every):.0%} "
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
    "compress": "One compression, without the model",
    "prune": "An agent transcript of a million tokens",
    "turn": "A turn, as the history grows",
    "proxy": "Proxies in front of an upstream that does nothing",
}
"""The works in their order. Proxies are last: they take the same time on every machine."""
NOTES = {
    "count": "Milliseconds of processor time. None of the texts was counted before.",
    "turn": (
        "A turn adds a question and an answer, and gets the messages to send. Milliseconds "
        "of processor time. All messages but the newest hundred were summarized earlier. "
        "The last column is the place of the summarized messages: in a file, only in "
        "memory, or lost."
    ),
    "compress": (
        "Milliseconds of processor time, with a model that answers at once. The newest "
        "30,000 tokens stay. enfold's time includes validation and a ledger that restores "
        "the input exactly. It does not include the receipt, which is computed on first "
        "access."
    ),
    "prune": (
        "The transcript is generated. Recorded sessions have fewer repeats; "
        '`benchmarks/lossless.py` measures many of them. "Restored" means that the input '
        "was restored from the result, byte for byte."
    ),
    "proxy": (
        "The proxy has one core. Latency (p50) is measured with one request at a time, "
        "throughput with 32 requests at a time. `added` is the time that the proxy adds, "
        "and `× bare` compares it with the time that the bare pass-through adds. The "
        "history is recognised from the second request on, as in normal use."
    ),
}
FURTHER: dict[str, dict[str, Callable[[dict[str, Any]], str]]] = {
    "count": {"tokens": lambda last: f"{last['tokens']:,}"},
    "turn": {
        "sent": lambda last: f"{last['sent']:,}",
        "history": lambda last: str(last["history"]),
    },
    "compress": {
        "sent": lambda last: f"{last['sent']:,}",
        "peak memory": lambda last: f"{last['peak'] / 2**20:,.0f} MiB",
    },
}
GOALS = "## Goals"
HEAD = """\
# Benchmarks

`make bench` measures enfold and comparable libraries in one run. Compare the ratios: the times are
those of one machine. Libraries that could not be measured are named after the tables.

In the tables, `× enfold` is the time of a library divided by the time of enfold, at the largest
size that both were measured with. `growth` describes how the time grows with the number of
messages; the number in brackets is the exponent. `sent` is the number of messages that go to the
model.

![Time of a turn as the history grows](benchmarks.svg)
"""


def report(
    works: Sequence[str], sizes: Sequence[int], chart: Path, minutes: float, *, quick: bool
) -> Iterator[str]:
    """Yield the report as Markdown, and write the chart."""
    yield HEAD
    found = gather(quick=quick)
    share = BEFORE_PROXIES if "proxy" in works else 1.0
    until = time.monotonic() + 60 * minutes * share
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for work in works:
            yield f"## {TITLES[work]}\n\n{NOTES[work]}\n"
            if work == "proxy":
                seconds = PROXY_SECONDS / 5 if quick else PROXY_SECONDS
                sent = 0 if quick else PROXY_REQUESTS
                try:
                    yield from proxy.report(seconds, sent, peers=not quick)
                except (proxy.NotStartedError, OSError, CalledProcessError) as error:
                    yield f"Not measured: {error}"
            elif work == "prune":
                yield from pruned_all(found.of.get(work, ()), folder, until)
            else:
                most = [size for size in sizes if SMALLEST[work] <= size <= LARGEST[work]]
                results = grown(found.of.get(work, ()), work, most, folder, until)
                yield from tell_growth(results, FURTHER[work])
                if work == "turn" and (lines := _lines_of(results)):
                    chart.write_text(_chart(lines), encoding="utf-8")
            yield ""
    yield from (f"- {peer} was not measured: {why}" for peer, why in found.missing.items())


def _transcript() -> list[Message]:
    messages = agent(3_000)
    while enfold.count(messages) < PRUNED:
        messages = agent(len(messages) * 5 // 4)
    return messages


def _lines_of(
    results: Mapping[str, Mapping[int, Outcome]],
) -> dict[str, list[tuple[float, float]]]:
    """Return sizes and milliseconds by contender, without those that have no figure."""
    lines = {
        name: [
            (float(size), outcome["seconds"] * 1e3)
            for size, outcome in outcomes.items()
            if not isinstance(outcome, str)
        ]
        for name, outcomes in results.items()
    }
    return {name: line for name, line in lines.items() if line}


def _chart(lines: Mapping[str, list[tuple[float, float]]]) -> str:
    return draw("Time of a turn as the history grows", lines, "messages", "ms of CPU a turn")


def _sizes(*, quick: bool) -> str:
    return QUICK_SIZES if quick else "100,1000,10000,100000,1000000"


def main() -> None:
    """Print the report; a complete one is also written to the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--works", default=",".join(TITLES))
    parser.add_argument("--sizes", default="")
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    works, quick = options.works.split(","), options.quick
    sizes = [int(size) for size in (options.sizes or _sizes(quick=quick)).split(",")]
    minutes = options.minutes or (QUICK_MINUTES if quick else MINUTES)
    is_whole = works == list(TITLES) and not quick
    with tempfile.TemporaryDirectory() as folder:
        chart = (DOCS if is_whole else Path(folder)) / "benchmarks.svg"
        lines = []
        for line in report(works, sizes, chart, minutes, quick=quick):
            print(line, flush=True)
            lines.append(line)
    if is_whole:
        page = DOCS / "benchmarks.md"
        # The goals are set by hand, with what was measured for each.
        _, heading, goals = page.read_text(encoding="utf-8").partition(GOALS)
        page.write_text("\n".join([*lines, "", heading + goals]), encoding="utf-8")


if __name__ == "__main__":
    main()
