"""Proof: docs/evaluation.md with its generated tables and plot written anew. `make proof` runs it.

    python benchmarks/proof.py [--quick] [--parts evidence recall …]

Each part runs one command and replaces the text between its markers in the page; all other text of
the page stays. Recorded conversations come from ENFOLD_DATA (see `recorded`). A part without its
files, and a library that cannot be installed, are named in the page. With `--quick` three
conversations of each file are measured, one case of each kind of compactbench, and the page is
printed and not written. All parts take about a quarter of an hour on two busy cores, `--quick`
about five minutes; the page states the duration of its run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import compaction_cases
from abstention import AGENTS
from agent_recall import SETS as AGENT_SETS
from recorded import DATA

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "evaluation.md"
PLOT = PAGE.with_suffix(".svg")
QUICK = 3
"""Conversations of each file that `--quick` measures."""
TABLE_RULES = ("verbatim", "25 in a row", "answer's words", "quoted", "in substance")


class RunFolders(NamedTuple):
    """The folders of a run."""

    data: Path
    """The folder with conversations."""
    results: Path
    """The folder for figures and the plot."""
    quick: bool


class Part(NamedTuple):
    """A generated part of the page."""

    name: str
    files: tuple[str, ...]
    """Files of conversations without their ending; at least one is needed, if there are any."""
    command: Callable[[RunFolders, Sequence[str]], list[str]]
    """Returns the command. It writes its figures to `NAME.json` in the folder of results."""
    lines: Callable[[Any], Iterable[str]]
    """Returns the lines of the page for these figures."""


def script(name: str, *options: str) -> Callable[[RunFolders, Sequence[str]], list[str]]:
    """Return the command of a benchmark that takes sets and writes JSON."""

    def command(run: RunFolders, sets: Sequence[str]) -> list[str]:
        output = str(run.results / f"{name}.json")
        chosen = ["--sets", *sets] if sets else []
        quick = ["--quick"] if run.quick and not sets else []
        file = str(HERE / f"{name}.py")
        return [sys.executable, file, *chosen, *options, *quick, "--json", output]

    return command


def evaluate(run: RunFolders, sets: Sequence[str]) -> list[str]:
    """Return the command that measures the evidence of questions."""
    files = [str(run.data / f"{name}.jsonl") for name in sets]
    plot = str(run.results / PLOT.name)
    return [sys.executable, "-m", "enfold.cli", "eval", *files, "--plot", plot, "--json"]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], text: int = 1) -> list[str]:
    """Return a table in Markdown; the first `text` columns are text, the others numbers."""
    marks = ["---" if at < text else "--:" for at in range(len(columns))]
    return [f"| {' | '.join(each)} |" for each in (columns, marks, *rows)]


def percent(share: float | None) -> str:
    """Return a share as the page writes it."""
    return "–" if share is None else f"{100 * share:.1f} %"


def evidence_lines(found: Any) -> list[str]:
    """Return the tables of evidence by rule, and of chains by questions."""
    rules = [each for each in found["rules"] if each["rule"] in TABLE_RULES]
    rows = [
        [
            each["half"],
            each["rule"],
            str(each["questions"]),
            percent(each["newest"]),
            percent(each["in_view"]),
            "–" if each["times"] is None else f"{each['times']:.1f}",
            percent(each["by_search"]),
            percent(each["reachable"]),
        ]
        for each in rules
    ]
    columns = ["half", "rule", "questions", "newest", "in view", "times", "by search", "reachable"]
    chains: list[list[str]] = []
    for each in found["summaries"]:
        first, last = each["evidence_of_first_third"]
        for rule in TABLE_RULES:
            if rule in first and rule in last:
                before, after = first[rule]["reachable"], last[rule]["reachable"]
                left = percent(after / before) if before else "–"
                questions = str(first[rule]["questions"])
                chains.append(
                    [each["half"], rule, questions, percent(before), percent(after), left]
                )
    return [
        *table(columns, rows, 2),
        "",
        "After ten more compressions, for the questions about the first third:",
        "",
        *table(
            ["half", "rule", "questions", "reachable after the first", "after ten more", "left"],
            chains,
            2,
        ),
        "",
        f"![Evidence and items after a compression, and after ten]({PLOT.name})",
    ]


def recall_lines(found: Any) -> list[str]:
    """Return the table of recall beside BM25."""
    names = {"has_whole": "word for word", "has_row": "25 words in a row"}
    methods = list(dict.fromkeys(row["by"] for row in found))
    keys = dict.fromkeys((row["set"], row["half"], row["rule"]) for row in found)
    rows: list[list[str]] = []
    for key in keys:
        of_key = {r["by"]: r for r in found if (r["set"], r["half"], r["rule"]) == key}
        questions = str(of_key[methods[0]]["questions"])
        shares = [percent(of_key[name]["share"]) for name in methods]
        rows.append([key[0], key[1], names[key[2]], questions, *shares])
    cpu = {row["set"]: f"{row['cpu_ms']:.1f} ms in {row['set']}" for row in found}
    columns = ["file", "half", "rule", "questions", *methods]
    return [
        *table(columns, rows, 3),
        "",
        f"CPU time of one recall, in all: {', '.join(cpu.values())}.",
    ]


def abstention(run: RunFolders, names: Sequence[str]) -> list[str]:
    """Return the command that measures abstention; all files of agents are one set."""
    sets = dict.fromkeys(AGENTS if name in AGENT_SETS else name for name in names)
    return script("abstention")(run, list(sets))


def abstention_lines(found: Any) -> list[str]:
    """Return the table of questions that nothing fits."""
    rows = [
        [r["set"], r["half"], r["about"], str(r["questions"]), percent(r["share"])] for r in found
    ]
    return table(["file", "half", "questions about", "number", "nothing fits"], rows, 3)


def agent_lines(found: Any) -> list[str]:
    """Return the table of answered questions about agent sessions."""
    kinds = [r for r in found if r["by"] == "kind"]
    total = sum(r["questions"] for r in kinds)
    share = sum(r["questions"] * r["share"] for r in kinds) / max(1, total)
    rows = [[r["name"], str(r["questions"]), percent(r["share"])] for r in kinds]
    return table(["kind", "questions", "answered"], [*rows, ["all", str(total), percent(share)]])


def compactbench_lines(found: Any) -> list[str]:
    """Return the table of compactbench, and the libraries that were left out."""
    shown = compaction_cases.table(found["rows"]) if found["rows"] else []
    return [*shown, "", *(f"Left out: {each}" for each in found["missing"])]


PARTS = (
    Part("evidence", ("qmsum",), evaluate, evidence_lines),
    Part("recall", ("qmsum", "qmsum_train"), script("recall"), recall_lines),
    Part("abstention", ("qmsum", "memorybank", *AGENT_SETS), abstention, abstention_lines),
    Part("agent_recall", AGENT_SETS, script("agent_recall"), agent_lines),
    Part("compaction_cases", (), script("compaction_cases"), compactbench_lines),
)


def measure(part: Part, run: RunFolders) -> tuple[list[str], list[str]]:
    """Return the lines of a part, and a sentence for each thing that was not there."""
    there = [name for name in part.files if (run.data / f"{name}.jsonl").is_file()]
    missing = [
        f"{part.name}: there is no {name}.jsonl." for name in part.files if name not in there
    ]
    if part.files and not there:
        return [], [*missing, f"{part.name} was not measured; its figures are from an earlier run."]
    command = part.command(run, there)
    variables = os.environ | {"ENFOLD_DATA": str(run.data)}
    print(f"{part.name} …", file=sys.stderr)
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return [], [*missing, f"{part.name} failed: {last}"]
    file = run.results / f"{part.name}.json"
    text = file.read_text(encoding="utf-8") if file.exists() else done.stdout
    return list(part.lines(json.loads(text))), missing


def replace_part(page: str, name: str, lines: Sequence[str]) -> str:
    """Return the page with other lines between the markers of a part."""
    begin, end = f"<!-- proof: {name} -->\n", "\n<!-- end of proof -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise SystemExit(
            f"{PAGE.name} has no place for {name}; add {begin.strip()} … {end.strip()}"
        )
    shown = "\n".join(lines)
    return f"{before}{begin}\n{shown}\n{end}{after}"


def shorten(data: Path, folder: Path) -> None:
    """Copy the first conversations of each file."""
    for file in data.glob("*.jsonl"):
        with file.open(encoding="utf-8") as lines:
            (folder / file.name).write_text("".join(itertools.islice(lines, QUICK)), "utf-8")


def main() -> None:
    """Measure the parts and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--parts", nargs="+", choices=[part.name for part in PARTS])
    options = parser.parse_args()
    chosen = [part for part in PARTS if not options.parts or part.name in options.parts]
    page = PAGE.read_text(encoding="utf-8")
    started = time.monotonic()
    missing: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        run = RunFolders(DATA, Path(folder), options.quick)
        if options.quick:
            short = Path(folder) / "data"
            short.mkdir()
            shorten(DATA, short)
            run = run._replace(data=short)
        for part in chosen:
            lines, absent = measure(part, run)
            missing += absent
            page = replace_part(page, part.name, lines) if lines else page
        plot = run.results / PLOT.name
        if plot.exists() and not options.quick:
            PLOT.write_bytes(plot.read_bytes())
    minutes = (time.monotonic() - started) / 60
    names = ", ".join(part.name for part in chosen)
    summary = f"Measured on {datetime.now(UTC):%d %B %Y} in {minutes:.0f} minutes: {names}."
    nothing = ["No file was missing."]
    page = replace_part(page, "run", [summary, "", *(missing or nothing)])
    if options.quick:
        print(page)
    else:
        PAGE.write_text(page, encoding="utf-8")
    print("\n".join([summary, *missing]), file=sys.stderr)


if __name__ == "__main__":
    main()
