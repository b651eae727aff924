"""What the proxy adds to a request, beside a bare pass-through; the upstream does nothing.

    python benchmarks/proxy.py [--seconds 5]

Upstream, proxies and load are processes of their own, on loopback; each proxy has one core to
itself where the system lets it. Three bodies: a short one, 100 messages, and 100,000 tokens. Every
answer is checked for what it should be.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

HERE = Path(__file__).parent / "proxy_servers.py"
CONCURRENT = 32
WORDS_100K = 100_000
PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Figures:
    """What one address did with one body."""

    p50: float
    """Seconds of a request, one after the other."""
    per_second: float
    """Requests a second, 32 at a time."""


def bodies() -> dict[str, bytes]:
    """The requests, by name."""
    many = [
        {
            "role": "assistant" if number % 2 else "user",
            "content": f"{number}: " + "a few words " * 8,
        }
        for number in range(99)
    ]
    long = [
        {"role": "assistant" if number % 2 else "user", "content": f"{number} " + "word " * 1_000}
        for number in range(WORDS_100K // 1_000 - 1)
    ]
    asked = {"role": "user", "content": "And now?"}
    return {
        "short": _body([asked]),
        "100 messages": _body([*many, asked]),
        "100k tokens": _body([*long, asked]),
    }


def _body(messages: list[dict[str, str]]) -> bytes:
    return json.dumps({"model": "gpt-4.1-mini", "messages": messages}).encode()


async def measure(address: str, body: bytes, seconds: float) -> Figures:
    """Latency of one at a time, then throughput of 32 at a time."""
    headers = {"authorization": "Bearer sk-bench", "content-type": "application/json"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as client:
        for _ in range(20):
            await _ask(client, address, body)
        alone = [await _ask(client, address, body) for _ in range(200)]
        until = time.perf_counter() + seconds
        done = await asyncio.gather(
            *(_go_on(client, address, body, until) for _ in range(CONCURRENT))
        )
    return Figures(statistics.median(alone), sum(done) / seconds)


async def _go_on(client: aiohttp.ClientSession, address: str, body: bytes, until: float) -> int:
    count = 0
    while time.perf_counter() < until:
        await _ask(client, address, body)
        count += 1
    return count


async def _ask(client: aiohttp.ClientSession, address: str, body: bytes) -> float:
    started = time.perf_counter()
    async with client.post(address + PATH, data=body) as answer:
        raw = await answer.read()
        if answer.status != 200 or b'"pong"' not in raw:
            sys.exit(f"{address} answered {answer.status}: {raw[:200]!r}")
    return time.perf_counter() - started


@contextmanager
def running(command: list[str], port: int, core: int | None, **variables: str) -> Iterator[int]:
    """The process id of a server, once it answers on the port."""
    pinned = ["taskset", "-c", str(core), *command] if core is not None else command
    quiet = subprocess.DEVNULL
    environment = {**os.environ, **variables}
    with subprocess.Popen(pinned, env=environment, stdout=quiet, stderr=quiet) as process:
        try:
            _wait(port, process)
            yield process.pid
        finally:
            process.terminate()


def _wait(port: int, process: subprocess.Popen[bytes], seconds: float = 120) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return
    sys.exit(f"nothing answers on port {port}")


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


def memory(process: int) -> float:
    """Megabytes that a process holds."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args()
    upstream, bare, ours = (free_port() for _ in range(3))
    target = f"http://127.0.0.1:{upstream}"
    python, cores = sys.executable, (os.cpu_count() or 1) > 1
    with (
        tempfile.TemporaryDirectory() as folder,
        running([python, str(HERE), "upstream", str(upstream)], upstream, 1 if cores else None),
        running([python, str(HERE), "bare", str(bare), target], bare, 0 if cores else None),
        running(
            [
                python,
                "-m",
                "enfold.cli",
                "serve",
                f"--port={ours}",
                f"--db=sqlite:///{folder}/p.db",
            ],
            ours,
            0 if cores else None,
            ENFOLD_OPENAI_BASE_URL=target,
        ) as process,
    ):
        addresses = {"nothing between": upstream, "bare pass-through": bare, "enfold": ours}
        results = compare(addresses, options.seconds)
        print(f"\nenfold holds {memory(process):.0f} MB after that.")
    judge(results)


def compare(addresses: dict[str, int], seconds: float) -> dict[tuple[str, str], Figures]:
    """Every body through every address."""
    results: dict[tuple[str, str], Figures] = {}
    print("| body | through | p50 ms | added ms | requests/s |\n|---|---|--:|--:|--:|")
    for name, body in bodies().items():
        for through, port in addresses.items():
            found = asyncio.run(measure(f"http://127.0.0.1:{port}", body, seconds))
            results[name, through] = found
            added = found.p50 - results[name, "nothing between"].p50
            print(
                f"| {name} | {through} | {found.p50 * 1e3:.2f} | {added * 1e3:.2f} "
                f"| {found.per_second:,.0f} |"
            )
    return results


def judge(results: dict[tuple[str, str], Figures]) -> None:
    """What was aimed at, and what came of it."""
    for name in bodies():
        ours, bare = results[name, "enfold"], results[name, "bare pass-through"]
        direct = results[name, "nothing between"]
        added = (ours.p50 - direct.p50) / max(1e-6, bare.p50 - direct.p50)
        print(
            f"{name}: adds {added:.1f} times what a bare pass-through adds, "
            f"{ours.per_second / bare.per_second:.2f} of its requests a second"
        )


if __name__ == "__main__":
    main()
