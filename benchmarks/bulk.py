"""Condense many small transcripts with each engine: `python benchmarks/bulk.py [--transcripts N]`.

The results are compared byte for byte. Times are those of the whole command, start-up included; CPU
time is that of all its processes.
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
    """Write chats of an agent with one or two tool results each; return their bytes."""
    folder.mkdir()
    for number in range(files):
        lines = (json.dumps(chat(each)) for each in range(number, transcripts, files))
        (folder / f"{number}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sum(path.stat().st_size for path in folder.iterdir())


def chat(number: int) -> dict[str, object]:
    """Return a short chat that differs from every other."""
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
    """Return the wall seconds and the CPU seconds."""
    command = [sys.executable, "-m", "enfold.cli", "condense", str(folder / "in")]
    command += ["--strategy", "truncation", "--engine", engine, "--out", str(folder / engine)]
    started, before = perf_counter(), cpu_seconds()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    return perf_counter() - started, cpu_seconds() - before


def cpu_seconds() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def results(folder: Path) -> dict[str, bytes]:
    """Return the written files, without the journal."""
    files = (path for path in folder.iterdir() if not path.name.startswith("."))
    return {path.name: path.read_bytes() for path in files}


if __name__ == "__main__":
    main()
