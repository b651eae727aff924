"""Many small transcripts, by each engine: `python benchmarks/bulk.py [--transcripts N]`.

The files and what comes of them are compared byte for byte; times are of the whole command, with
what it takes to start, and CPU time is of all its processes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ENGINES = ("local", "daft")


def main() -> None:
    """Write the transcripts, condense them with each engine, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transcripts", type=int, default=20_000)
    parser.add_argument("--files", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = write(folder / "in", given.transcripts, given.files)
        print(f"{given.transcripts:,} transcripts in {given.files} files, {size / 2**20:.0f} MiB")
        for engine in ENGINES:
            seconds, cpu = condense(folder, engine)
            each = 1_000 * cpu / given.transcripts
            print(f"{engine:<8} {seconds:>8.1f} s, CPU {cpu:>8.1f} s, {each:.2f} ms a transcript")
        same = results(folder / "local") == results(folder / "daft")
        print("the results are the same" if same else "THE RESULTS DIFFER")
        sys.exit(0 if same else 1)


def write(folder: Path, transcripts: int, files: int) -> int:
    """Chats of an agent with a tool result or two each; how many bytes they are."""
    folder.mkdir()
    for number in range(files):
        lines = (json.dumps(chat(each)) for each in range(number, transcripts, files))
        (folder / f"{number}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sum(path.stat().st_size for path in folder.iterdir())


def chat(number: int) -> dict[str, object]:
    """A short one, unlike every other."""
    messages: list[dict[str, object]] = [{"role": "user", "content": f"Look at module {number}."}]
    for turn in range(3):
        call = {"name": "read", "arguments": json.dumps({"path": f"src/m{number}/{turn}.py"})}
        body = "\n".join(f"value_{line} = {number * turn + line}" for line in range(40))
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{turn}", "type": "function", "function": call}],
            }
        )
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": body})
    return {"messages": [*messages, {"role": "user", "content": "What does it do?"}]}


def condense(folder: Path, engine: str) -> tuple[float, float]:
    """How long it takes, and how much CPU time."""
    command = [sys.executable, "-m", "enfold.cli", "condense", str(folder / "in")]
    command += ["--strategy", "truncation", "--engine", engine, "--out", str(folder / engine)]
    started, before = perf_counter(), cpu_seconds()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return perf_counter() - started, cpu_seconds() - before


def cpu_seconds() -> float:
    """Of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def results(folder: Path) -> dict[str, bytes]:
    """All that was written, apart from the journal."""
    files = (path for path in folder.iterdir() if not path.name.startswith("."))
    return {path.name: path.read_bytes() for path in files}


if __name__ == "__main__":
    main()
