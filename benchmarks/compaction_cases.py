"""compactbench: enfold beside other libraries, on its public cases without a model.

    python benchmarks/compaction_cases.py [--quick] [--json FILE]

Every library and compactbench itself have environments of their own, which the first run installs
(see `peers`). A library that cannot be installed, or fails, is named and left out. A case is
compacted to a quarter and to an eighth of its tokens, three times in a row; see
`peer_scripts/compactbench_cases.py` for the score.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import peers
from peers import Peer, run_script

VERSION = "0.1.0"
COMPACTBENCH = Peer(
    "compactbench",
    (f"compactbench=={VERSION}", "splintr-rs>=0.22,<1"),
    "compactbench_cases.py",
)
COMPACTORS: tuple[tuple[str, Peer | None], ...] = (
    ("enfold native", None),
    ("newest messages", None),
    ("LangChain trim_messages", peers.LANGCHAIN),
    ("LangMem", peers.LANGCHAIN),
    ("LiteLLM trim_messages", peers.LITELLM),
    ("LiteLLM compress", peers.LITELLM),
    ("LlamaIndex ChatMemoryBuffer", peers.LLAMA_INDEX),
    ("headroom compress", peers.HEADROOM),
    ("OpenAI Agents, newest items", peers.OPENAI_AGENTS),
    ("OpenHands LLMSummarizingCondenser", peers.OPENHANDS),
)
"""Each compactor with the library that it needs besides enfold."""
SECONDS = 1_800
"""Time limit of one compactor."""


def suites(python: Path) -> Path | str:
    """Return the folder with compactbench's cases, or the reason why there is none.

    Only the source archive has them.
    """
    folder = peers.FOLDER / "compactbench" / "source"
    found = folder / f"compactbench-{VERSION}" / "benchmarks" / "public"
    if found.is_dir():
        return found
    download = ["pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "-d"]
    command = [str(python), "-m", *download, str(folder), f"compactbench=={VERSION}"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=peers.INSTALLING)
    except (subprocess.SubprocessError, OSError) as error:
        return f"its cases could not be downloaded: {error}"
    with tarfile.open(folder / f"compactbench-{VERSION}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return found


def measure(*, quick: bool = False) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the scores of each compactor, and a sentence for each that was left out."""
    python = COMPACTBENCH.environment()
    cases = python if isinstance(python, str) else suites(python)
    if isinstance(cases, str):
        return [], [f"compactbench {cases}."]
    script = peers.SCRIPTS / COMPACTBENCH.script
    rows: list[dict[str, Any]] = []
    missing: list[str] = []
    for name, peer in COMPACTORS:
        has = sys.executable if peer is None else peer.environment()
        if peer is not None and isinstance(has, str):
            missing.append(f"{name} {has}.")
            continue
        command = [str(python), str(script), str(cases), name, str(has)]
        done = run_script([*command, *(["--quick"] * quick)], SECONDS)
        if isinstance(done, str):
            missing.append(f"{name} {done}.")
        else:
            rows += [{"by": name, **row} for row in done["rows"]]
    return rows, missing


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a table in Markdown: the mean of both suites for each compactor."""
    lines = [
        "| compactor | score at 4x | after drift | ratio | score at 8x | after drift | ratio |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name in dict.fromkeys(row["by"] for row in rows):
        cells = [name]
        for ratio in (4, 8):
            found = [row for row in rows if (row["by"], row["asked"]) == (name, ratio)]
            count = sum(row["cases"] for row in found)
            for key, form in (("score", ".3f"), ("drift", ".3f"), ("ratio", ".1f")):
                value = sum(row[key] * row["cases"] for row in found) / count
                cells.append(f"{value:{form}}{'x' if key == 'ratio' else ''}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Print the table, and the libraries that were left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one case of each template")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows, missing = measure(quick=options.quick)
    print("\n".join([*(table(rows) if rows else ()), *missing]))
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "missing": missing}, indent=1))


if __name__ == "__main__":
    main()
