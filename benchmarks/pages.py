"""Pages of the web UI over small and large stores: `python benchmarks/pages.py [--messages N]`.

Three databases: one session with 1,000 messages, one with a million that are summarized, and 2,000
sessions. The figures are CPU times of the server to build a page, the best of several: other work
on the machine hardly changes them. The target is twice the time of the small store.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from proxy import free_port

import enfold
from enfold.messages import Message, Text

PAGES = {
    "a session": "/s/talk",
    "the full history": "/s/talk/history",
    "the dashboard": "/dashboard",
    "settings: general": "/settings",
    "settings: strategy": "/settings/strategy",
    "settings: presets": "/settings/presets",
    "settings: profiles": "/settings/profiles",
    "settings: prompts": "/settings/prompts",
    "settings: models": "/settings/models",
    "settings: access": "/settings/access",
}
BATCH = 5_000
PATIENCE = 120.0
"""Seconds for the server's start."""
SETTLING = 5.0
"""Seconds for work that the server does after its start."""


async def fill(path: Path, sessions: int, messages: int) -> None:
    """Fill a database with sessions of short messages; a long session is summarized."""
    async with enfold.open(f"sqlite:///{path}") as engine:
        for number in range(sessions):
            session = await engine.session("talk" if not number else f"talk {number}")
            for start in range(0, messages, BATCH):
                end = min(messages, start + BATCH)
                await session.append(*(_message(index) for index in range(start, end)))
            if messages > 2 * BATCH:
                await session.compress()


def _message(index: int) -> Message:
    return Message(
        "assistant" if index % 2 else "user",
        (Text(f"Line {index}: the boat leaves at {index % 24}:00."),),
    )


def measure(path: Path, rounds: int) -> dict[str, float]:
    """Return the CPU milliseconds of each page, the best of the rounds."""
    port = free_port()
    command = [sys.executable, "-m", "enfold.cli", "serve", "--port", str(port)]
    server = subprocess.Popen(
        [*command, "--db", f"sqlite:///{path}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        _wait(f"{address}/readyz")
        time.sleep(SETTLING)
        return {
            name: min(_cpu_of(server.pid, f"{address}{page}") for _ in range(rounds))
            for name, page in PAGES.items()
        }
    finally:
        server.terminate()
        server.wait()


def _cpu_of(process: int, address: str) -> float:
    before = _cpu(process)
    with urlopen(address) as page:
        page.read()
    return (_cpu(process) - before) / 1e6


def _cpu(process: int) -> int:
    """Return the nanoseconds that all threads of a process have run."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(each.read_text("ascii").split()[0]) for each in threads)


def _wait(address: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            urlopen(address).close()
        except URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def main() -> None:
    """Print a table with the pages and their times."""
    parser = argparse.ArgumentParser(description="Measure pages of the web UI.")
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    stores = {
        "one session, 1,000 messages": (1, 1_000),
        f"one session, {given.messages:,} messages, summarized": (1, given.messages),
        f"{given.sessions:,} sessions": (given.sessions, 20),
    }
    times = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (sessions, messages) in enumerate(stores.values()):
            path = Path(folder, f"{number}.db")
            asyncio.run(fill(path, sessions, messages))
            times.append(measure(path, given.rounds))
    print("| page, CPU ms |", " | ".join(stores), "| at most |")
    print("|---|", "--:|" * (len(stores) + 1), sep="")
    for page in PAGES:
        found = [each[page] for each in times]
        ratio = max(found) / found[0]
        print(f"| {page} |", " | ".join(f"{each:.0f}" for each in found), f"| {ratio:.1f} × |")


if __name__ == "__main__":
    main()
