"""The overhead of the gateway: the same call through it and through the bare client.

    python benchmarks/gateway.py [--rounds 50] [--latency 0.2] [--messages 20]

The server is a separate process that takes a fixed time to answer. The two take turns on warm
connections; the overhead is the difference in wall time and in CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from enfold.llm.calls import Call, Connection, ModelReply, Secret
from enfold.llm.gateway import ModelGateway
from enfold.testing import assistant, user

MODEL = "gpt-4.1-mini"
LIMIT = 1.05
"""The goal for the ratio of the wall times."""
_HEAD: dict[str, Any] = {"id": "c1", "created": 1, "model": MODEL}
_USAGE = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
WORDS = [f"word{number} " for number in range(60)]


async def serve(latency: float) -> None:
    """Answer every request in this many seconds: complete at their end, or streamed."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                sent = _streamed() if body.get("stream") else [_whole()]
                for piece in sent:
                    await asyncio.sleep(latency / len(sent))
                    writer.write(piece)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _whole() -> bytes:
    message = {"role": "assistant", "content": "".join(WORDS)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    completion = {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
    body = json.dumps(completion).encode()
    return _head("application/json", len(body)) + body


def _streamed() -> list[bytes]:
    choices: list[list[dict[str, Any]]] = [
        [{"index": 0, "delta": {"content": word}, "finish_reason": None}] for word in WORDS
    ]
    choices.append([{"index": 0, "delta": {}, "finish_reason": "stop"}])
    chunks: list[dict[str, Any]] = [
        {**_HEAD, "object": "chat.completion.chunk", "choices": choice} for choice in choices
    ]
    chunks.append({**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE})
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    body = [line.encode() for line in (*lines, "data: [DONE]\n\n")]
    return [_head("text/event-stream", sum(map(len, body))) + body[0], *body[1:]]


def _head(mime: str, length: int) -> bytes:
    return f"HTTP/1.1 200 OK\r\ncontent-type: {mime}\r\ncontent-length: {length}\r\n\r\n".encode()


async def compare(
    ours: Callable[[], Awaitable[None]], bare: Callable[[], Awaitable[None]], rounds: int
) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return the wall and CPU seconds of each call; the two take turns."""
    taken: tuple[list[tuple[float, float]], ...] = ([], [])
    for warm_up in (True, False):
        for turn in range(3 if warm_up else rounds):
            pair = ((ours, taken[0]), (bare, taken[1]))
            for call, times in pair if turn % 2 else reversed(pair):
                started, cpu = time.perf_counter(), time.process_time()
                await call()
                if not warm_up:
                    times.append((time.perf_counter() - started, time.process_time() - cpu))
    return taken[0], taken[1]


async def run(url: str, rounds: int, messages: int) -> bool:
    """Print the table; return True if both ratios are below the limit."""
    from openai import AsyncOpenAI

    texts = [f"{number} " + "alpha beta gamma " * 15 for number in range(messages)]
    call = Call(
        tuple((assistant if at % 2 else user)(text) for at, text in enumerate(texts)),
        max_tokens=500,
        temperature=0.3,
    )
    body: list[Any] = [
        {"role": "assistant" if at % 2 else "user", "content": text}
        for at, text in enumerate(texts)
    ]
    connection = Connection("openai", MODEL, Secret("bench"), url)
    settings: dict[str, Any] = {
        "model": MODEL,
        "messages": body,
        "max_completion_tokens": 500,
        "temperature": 0.3,
    }
    async with (
        ModelGateway() as gateway,
        AsyncOpenAI(api_key="bench", base_url=url, max_retries=0) as client,
    ):

        async def our_whole() -> None:
            await gateway.complete(connection, call)

        async def bare_whole() -> None:
            await client.chat.completions.create(**settings)

        async def our_stream() -> None:
            async for item in gateway.stream(connection, call):
                last = item
            assert isinstance(last, ModelReply)

        async def bare_stream() -> None:
            options = {"include_usage": True}
            create: Any = client.chat.completions.create
            async for _ in await create(**settings, stream=True, stream_options=options):
                pass

        print("| call | gateway | bare client | ratio | gateway, CPU | bare client, CPU |")
        print("|---|--:|--:|--:|--:|--:|")
        whole = row("complete", *await compare(our_whole, bare_whole, rounds))
        stream = row(
            f"stream, {len(WORDS)} pieces", *await compare(our_stream, bare_stream, rounds)
        )
    return whole < LIMIT and stream < LIMIT


def row(name: str, ours: list[tuple[float, float]], bare: list[tuple[float, float]]) -> float:
    """Print a row of medians; return the ratio of the wall times."""
    figures = [
        statistics.median(each[column] for each in times) * 1e3
        for column in (0, 1)
        for times in (ours, bare)
    ]
    ratio = figures[0] / figures[1]
    print(
        f"| {name} | {figures[0]:.1f} ms | {figures[1]:.1f} ms | {ratio:.3f} | "
        f"{figures[2]:.2f} ms | {figures[3]:.2f} ms |",
        flush=True,
    )
    return ratio


def main() -> None:
    """Start the server and measure; exit with an error if the overhead is too high."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--messages", type=int, default=20)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.latency))
        return
    command = [sys.executable, __file__, "--serve", "--latency", str(options.latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        try:
            cheap = asyncio.run(run(url, options.rounds, options.messages))
        finally:
            server.terminate()
    if not cheap:
        sys.exit(f"the gateway takes more than {LIMIT - 1:.0%} longer than the bare client")


if __name__ == "__main__":
    main()
