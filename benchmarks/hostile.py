"""Good callers beside hostile ones: the answer times of the good ones, quiet and under attack.

    python benchmarks/hostile.py [--seconds 20] [--good 8] [--hostile 32] [--ways flood] [--bare]

A server is started with an access token for each caller, before a provider that does nothing. The
good callers append a message, read their status, send a turn through the proxy and ask for health,
with a short pause between requests. Then the hostile ones join in: slow heads, endless headers,
messages of 12 MB, bodies of 60 MB and floods of short requests. `--ways` chooses some of them.
With `--bare` the server is one that only reads bodies: the machine itself allows no better.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import aiohttp

sys.path.insert(0, str(Path(__file__).parent))
from proxy import HERE as SERVERS
from proxy import free_port, running

TOKEN = "a-first-token-for-this-benchmark"
PAUSE = 0.05


@dataclass
class AnswerTimes:
    """Answer times in seconds, and the statuses of the answers."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)

    def share(self, share: float) -> float:
        """Return the time that this share of the requests did not exceed."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000


async def main() -> None:
    """Measure both phases and print them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--good", type=int, default=8)
    parser.add_argument("--hostile", type=int, default=32)
    parser.add_argument("--ways", nargs="+", choices=sorted(WAYS), default=list(WAYS))
    parser.add_argument("--bare", action="store_true")
    given = parser.parse_args()
    port = free_port()
    upstream = [sys.executable, str(SERVERS), "upstream", str(port)]
    with tempfile.TemporaryDirectory() as folder, running(upstream, port, None) as process:
        if given.bare:
            quiet, attacked = await measure_both(given, f"http://127.0.0.1:{port}")
            memory = peak_memory(process)
        else:
            server, address = await start_server(Path(folder), f"http://127.0.0.1:{port}")
            try:
                quiet, attacked = await measure_both(given, address)
                memory = peak_memory(server.pid)
            finally:
                server.terminate()
                await server.wait()
    report("quiet", quiet)
    report("attacked", attacked)
    ratio = attacked.share(0.99) / quiet.share(0.99)
    errors = sum(
        count for status, count in attacked.statuses.items() if status >= 400 or not status
    )
    print(f"p99 {ratio:.1f} times, {errors} errors, server's peak memory {memory:,.0f} MB")


async def measure_both(given: argparse.Namespace, address: str) -> tuple[AnswerTimes, AnswerTimes]:
    """Measure the good callers by themselves, and beside the hostile ones."""
    async with aiohttp.ClientSession() as http:
        tokens = [await new_token(http, address, f"caller {n}") for n in range(given.good)]
        bad = [await new_token(http, address, f"bad {n}") for n in range(given.hostile)]
    await measure(address, tokens, 3)  # loads the tokenizer and opens connections
    quiet = await measure(address, tokens, given.seconds)
    attackers = get_context("spawn").Process(target=attack, args=(address, bad, given.ways))
    attackers.start()
    await asyncio.sleep(2)
    attacked = await measure(address, tokens, given.seconds)
    attackers.terminate()
    attackers.join()
    return quiet, attacked


def report(name: str, found: AnswerTimes) -> None:
    """Print one phase."""
    p50, p99 = found.share(0.5), found.share(0.99)
    print(f"{name:9} {len(found.seconds):6,} requests  p50 {p50:7.1f} ms  p99 {p99:7.1f} ms")


def peak_memory(process: int) -> float:
    """Return the largest resident memory of a process in MB."""
    text = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+)", text)
    return int(found[1]) / 1024 if found else 0.0


async def start_server(folder: Path, upstream: str) -> tuple[asyncio.subprocess.Process, str]:
    """Start a server; return it and its address."""
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "enfold.cli", "serve", "--port", "0", "--no-ui"),
        *("--db", f"sqlite:///{folder / 'chats.db'}"),
        env={
            **os.environ,
            "ENFOLD_TOKEN": TOKEN,
            "ENFOLD_OPENAI_BASE_URL": upstream,
            "HOME": str(folder),
        },
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    assert server.stderr is not None
    while line := (await server.stderr.readline()).decode():
        if found := re.search(r"http://[\w.]+:\d+", line):
            drain = asyncio.create_task(_drain(server.stderr))
            drain.add_done_callback(lambda _: None)
            return server, found[0]
    raise SystemExit("the server did not start")


async def _drain(log: asyncio.StreamReader) -> None:
    """Read the server's log, so that it never waits for a reader."""
    while await log.read(65536):
        pass


async def new_token(http: aiohttp.ClientSession, address: str, name: str) -> str:
    """Return a new access token."""
    headers = {"x-enfold-token": TOKEN}
    async with http.post(f"{address}/api/tokens", json={"name": name}, headers=headers) as answer:
        return str((await answer.json()).get("token", name))  # the bare server gives none


async def measure(address: str, tokens: list[str], seconds: float) -> AnswerTimes:
    """Let every good caller work for some seconds."""
    found = AnswerTimes()
    end = perf_counter() + seconds
    await asyncio.gather(*(be_good(address, token, end, found) for token in tokens))
    return found


async def be_good(address: str, token: str, end: float, found: AnswerTimes) -> None:
    """Append, read, send a turn and ask for health, one after the other."""
    headers = {"x-enfold-token": token}
    timeout = aiohttp.ClientTimeout(60)
    async with aiohttp.ClientSession(address, headers=headers, timeout=timeout) as http:
        await http.post("/api/sessions", json={"id": "chat"})
        number = 0
        while perf_counter() < end:
            number += 1
            body = {"messages": [{"role": "user", "content": f"message {number} of {token[-4:]}"}]}
            for method, path, sent in (
                ("POST", "/api/sessions/chat/messages", body),
                ("GET", "/api/sessions/chat/status", None),
                ("POST", "/v1/chat/completions", {"model": "gpt-4o", **body}),
                ("GET", "/healthz", None),
            ):
                begun = perf_counter()
                try:
                    async with http.request(method, path, json=sent) as answer:
                        await answer.read()
                        found.statuses[answer.status] += 1
                except (aiohttp.ClientError, TimeoutError):
                    found.statuses[0] += 1
                found.seconds.append(perf_counter() - begun)
                await asyncio.sleep(PAUSE)


def attack(address: str, tokens: list[str], ways: list[str]) -> None:
    """Run the hostile callers in a process of their own."""
    asyncio.run(attack_all(address, tokens, ways))


async def attack_all(address: str, tokens: list[str], ways: list[str]) -> None:
    """Give each hostile caller one of the ways to attack."""
    pairs = zip(tokens, cycle(ways), strict=False)
    await asyncio.gather(*(WAYS[way](address, token) for token, way in pairs))


async def again(step: Callable[[], Awaitable[object]]) -> None:
    """Repeat a step for ever; a refused one after a short pause."""
    while True:
        try:
            await step()
        except (OSError, aiohttp.ClientError, TimeoutError):
            await asyncio.sleep(0.2)


async def send_slow_heads(address: str, _token: str) -> None:
    """Open connections and send a byte of the headers now and then."""

    async def step() -> None:
        host, port = address.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /healthz HTTP/1.1\r\nx-slow: ")
        for _ in range(300):
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.1)
        writer.close()

    await again(step)


async def send_endless_header(address: str, _token: str) -> None:
    """Send a header that does not end."""

    async def step() -> None:
        host, port = address.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /healthz HTTP/1.1\r\nx-endless: ")
        try:
            while True:
                writer.write(b"a" * 65536)
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            writer.close()

    await again(step)


async def send_long_messages(address: str, token: str) -> None:
    """Append messages of 12 MB of emoji."""
    dice = random.Random(token)
    timeout = aiohttp.ClientTimeout(120)
    headers = {"x-enfold-token": token, "content-type": "application/json"}
    async with aiohttp.ClientSession(address, headers=headers, timeout=timeout) as http:
        await http.post("/api/sessions", json={"id": "long"})

        async def step() -> None:
            text = "".join(chr(0x1F300 + dice.randrange(700)) for _ in range(1000)) * 3000
            body = b'{"messages":[{"role":"user","content":"%s"}]}' % text.encode()
            async with http.post("/api/sessions/long/messages", data=body) as answer:
                if answer.status >= 400:
                    await asyncio.sleep(float(answer.headers.get("retry-after", "1")))

        await again(step)


@cache
def large_bodies() -> tuple[tuple[str, bytes], ...]:
    """Return a body of 60 MB for the API and one for the proxy, each with its path."""
    message = b'{"role":"user","content":"a tiny message"}'
    many = b",".join([message] * (60 * 2**20 // (len(message) + 1)))
    return (
        ("/api/sessions/large/messages", b'{"messages":[' + many + b"]}"),
        ("/v1/chat/completions", b'{"model":"gpt-4o","messages":[' + many + b"]}"),
    )


async def send_large_bodies(address: str, token: str) -> None:
    """Send bodies of 60 MB to the API and to the proxy in turn."""
    timeout = aiohttp.ClientTimeout(120)
    headers = {"x-enfold-token": token, "content-type": "application/json"}
    kinds = cycle(large_bodies())
    async with aiohttp.ClientSession(address, headers=headers, timeout=timeout) as http:

        async def step() -> None:
            path, body = next(kinds)
            async with http.post(path, data=body) as answer:
                if answer.status >= 400:
                    await asyncio.sleep(float(answer.headers.get("retry-after", "1")))

        await again(step)


async def flood(address: str, token: str) -> None:
    """Send short requests without a pause, sixteen at a time."""
    headers = {"x-enfold-token": token}
    async with aiohttp.ClientSession(address, headers=headers) as http:

        async def step() -> None:
            async with http.get("/api/sessions") as answer:
                await answer.read()

        await asyncio.gather(*(again(step) for _ in range(16)))


WAYS = {
    "heads": send_slow_heads,
    "headers": send_endless_header,
    "messages": send_long_messages,
    "bodies": send_large_bodies,
    "flood": flood,
}
"""The ways to attack, by name."""


if __name__ == "__main__":
    asyncio.run(main())
