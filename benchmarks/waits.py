"""The time that clients wait for the proxy while a slow model writes the summaries.

    python benchmarks/waits.py [--sessions 50] [--turns 20] [--summary-seconds 30]
        [--turn-seconds 8]

Sessions grow at the same time, each past the threshold of its model's window. Clients, `enfold
serve` and the provider are separate processes on loopback. The provider answers at once, so the
time of a request is the time that the proxy adds; a summary takes the provider its time. Times are
real: every client pauses between its requests. A first session is not measured: it waits for the
tokenizer and the tables that the server loads once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any

import aiohttp
import uvicorn

sys.path.insert(0, str(Path(__file__).parent))
from conversations import Author
from proxy import free_port, running
from simulated_proxy import SUMMARY_REQUEST

from enfold.testing import assistant
from enfold.testing.provider_replies import ReplyFacts, as_stream, write_anthropic

MODEL = "claude-sonnet-4-5"
WINDOW, REPLY = 40_000, 4_000
FIRST_SHARES, TURN_SHARE = (0.45, 0.6), 0.015
"""The history at the first request and what each turn adds, as shares of the window."""
TOKENS_PER_WORD = 2.2
"""Of the generated text, in the model's tokens."""
IS_SUMMARY = re.compile(SUMMARY_REQUEST + rb'|"stream": ?true')
"""Matches a request for a summary: it continues the conversation, or it is a stream."""
STEP = re.compile(r"Step \d+:(?: \w+){12}")
"""The beginning of a message, which a summary quotes."""
SETTINGS = {"ENFOLD_PROXY_CLIENT_KEY": "true", "ENFOLD_ON_FAILURE": "local"}
"""As in `enfold wrap`."""
BASE_URLS = ("ENFOLD_ANTHROPIC_BASE_URL", "ENFOLD_OPENAI_BASE_URL")
SETTLING = 5.0
"""Seconds for work that the server does after its start and after its first session."""


class SlowSummaryProvider:
    """An ASGI application that answers at once, except where a summary is asked for."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._summaries = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request; with GET, return the number of summaries."""
        body = bytearray()
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        request: Any = json.loads(body) if IS_SUMMARY.search(body) else {}
        if scope["method"] == "GET":
            text = str(self._summaries)
        elif request:
            await asyncio.sleep(self._seconds)
            self._summaries += 1
            text = summary_of(request["messages"])
        else:
            text = "Done."
        facts = ReplyFacts("1", MODEL, len(body) // 4, 0, len(text) // 4)
        whole, events = write_anthropic(assistant(text), facts)
        is_stream = request.get("stream", False)
        form = b"text/event-stream" if is_stream else b"application/json"
        answer = as_stream(events) if is_stream else json.dumps(whole).encode()
        headers = [(b"content-type", form)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


def summary_of(messages: Sequence[Any]) -> str:
    """Return the first words of each step, as a model would write a summary of them."""
    texts = (block for message in messages for block in text_of(message["content"]))
    steps = dict.fromkeys(step for text in texts for step in STEP.findall(text))
    return "\n".join(f"- {step}." for step in steps)


def text_of(content: Any) -> list[str]:
    """Return the texts of a message."""
    return [content] if isinstance(content, str) else [block["text"] for block in content]


@dataclass
class Client:
    """One agent: it sends its whole history with every request."""

    number: int
    author: Author
    messages: list[Any] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    largest: int = 0
    last_decision: str = ""

    def write(self, turns: int) -> None:
        """Write all requests, so that clients do not wait for each other's text."""
        share = self.author.random.uniform(*FIRST_SHARES)
        for _ in range(20):
            self._add(int(WINDOW * share / TOKENS_PER_WORD / 20))
        for _ in range(turns):
            self._add(int(WINDOW * TURN_SHARE / TOKENS_PER_WORD))
            body = {"model": MODEL, "max_tokens": REPLY, "messages": self.messages[:-1]}
            self.bodies.append(json.dumps(body | {"system": "Work."}).encode())

    def _add(self, words: int) -> None:
        text = " ".join(self.author.words(words))
        self.messages += [
            {"role": "user", "content": f"Step {len(self.messages)}: {text}"},
            {"role": "assistant", "content": f"Done with step {len(self.messages)}."},
        ]

    async def run(self, http: aiohttp.ClientSession, url: str, seconds: float) -> None:
        """Send the requests."""
        await asyncio.sleep(random.uniform(0, seconds))
        headers = {
            "content-type": "application/json",
            "x-api-key": "key",
            "x-claude-code-session-id": f"session-number-{self.number:04}",
        }
        for body in self.bodies:
            begin = perf_counter()
            async with http.post(f"{url}/v1/messages", data=body, headers=headers) as answer:
                text = await answer.text()
                if not answer.ok:
                    raise RuntimeError(f"status {answer.status}: {text[:500]}")
            self.waits.append(perf_counter() - begin)
            self.largest = max(self.largest, int(answer.headers["x-enfold-tokens-after"]))
            self.last_decision = answer.headers["x-enfold-decision"]
            await asyncio.sleep(random.uniform(0.8, 1.2) * seconds)


async def send_all(server: str, provider: str, clients: list[Client], pause: float) -> int:
    """Run all clients at the same time; return the number of summaries."""
    first = Client(len(clients), Author(len(clients)))
    first.write(2)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        await asyncio.sleep(SETTLING)
        await first.run(http, server, 0)
        await asyncio.sleep(SETTLING)
        await asyncio.gather(*(each.run(http, server, pause) for each in clients))
        async with http.get(provider) as counted:
            return int((await counted.json())["content"][0]["text"])


def main(sessions: int, turns: int, seconds: float, pause: float) -> None:
    """Start the servers, run all clients and print the figures."""
    clients = [Client(number, Author(number)) for number in range(sessions)]
    for each in clients:
        each.write(turns)
    here, there = free_port(), free_port()
    server, provider = f"http://127.0.0.1:{here}", f"http://127.0.0.1:{there}"
    with tempfile.TemporaryDirectory() as folder:
        database = f"--db=sqlite:///{folder}/waits.db"
        enfold = [sys.executable, "-m", "enfold.cli"]
        limits = [f"--max-input={WINDOW}", f"--max-output={REPLY}"]
        model = [*enfold, "models", "set", f"anthropic:{MODEL}", *limits, database, "--json"]
        [found] = json.loads(subprocess.run(model, check=True, capture_output=True).stdout)
        serve = [*enfold, "serve", "--no-ui", f"--port={here}", database]
        simulated = [
            sys.executable,
            __file__,
            f"--provider={there}",
            f"--summary-seconds={seconds}",
        ]
        with (
            running(simulated, there, None),
            running(serve, here, None, **SETTINGS, **dict.fromkeys(BASE_URLS, provider)),
        ):
            written = asyncio.run(send_all(server, provider, clients, pause))
    waits = sorted(wait * 1_000 for each in clients for wait in each.waits)
    cuts = quantiles(waits, n=100)
    limit = int(found["max_input"] / found["correction"])
    print(f"{len(waits):,} requests of {sessions} sessions, {written} summaries of {seconds:g} s")
    print(
        f"added wait in ms: p50 {cuts[49]:.1f}, p90 {cuts[89]:.1f}, p99 {cuts[98]:.1f}, "
        f"longest {waits[-1]:.1f}"
    )
    print(f"sessions that were compressed: {sum(each.last_decision != 'keep' for each in clients)}")
    print(f"longest request {max(each.largest for each in clients):,} tokens of {limit:,}")
    print(f"requests that did not fit: {sum(each.largest > limit for each in clients)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--summary-seconds", type=float, default=30.0)
    parser.add_argument("--turn-seconds", type=float, default=8.0)
    parser.add_argument("--provider", type=int, help="serve the provider on this port")
    given = parser.parse_args()
    if given.provider:
        uvicorn.run(
            SlowSummaryProvider(given.summary_seconds),
            port=given.provider,
            log_level="error",
            lifespan="off",
            timeout_keep_alive=75,
        )
    else:
        main(given.sessions, given.turns, given.summary_seconds, given.turn_seconds)
