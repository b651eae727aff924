"""Background compressions start at moments that cost little, and never twice."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from enfold.budget import Decision, Limits, Load, Policy, decide
from enfold.errors import SummaryError
from enfold.messages import Message
from enfold.server.proxy.background import EARLIEST, BackgroundCompressions
from enfold.testing import ScriptedSummarizer, assistant, call
from enfold.testing.provider import ProviderRequest, StrictProvider
from tests.server.proxy.stage import WINDOW, question, stage

LIMITS = Limits(100_000, 10_000)
KEY = ("", "session")
LONG = 3_600.0
KEYS = {"authorization": "Bearer k"}


def at(tokens: int) -> Decision:
    """The decision about a view of this size: from 71,250 on a compression may start."""
    return decide(Load(tokens), LIMITS, Policy())


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Compression:
    """Work that is counted, and ends when it is told to."""

    begun: int = 0
    failures: int = 0
    open: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> None:
        self.begun += 1
        if self.failures:
            self.failures -= 1
            raise SummaryError("away")
        await self.open.wait()


async def _settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("growth", "seconds", "starts"),
    [(500, 10.0, False), (5_000, 10.0, True), (500, 0.5, True)],
    ids=["there is time", "long requests", "quick requests"],
)
async def test_a_compression_starts_early_only_if_it_would_be_late_otherwise(
    growth: int, seconds: float, starts: bool
) -> None:
    clock, work = Clock(), Compression()
    background = BackgroundCompressions(idle_seconds=LONG, clock=clock)
    for number in range(2):
        assert at(74_000 + number * growth).action == "should"
        background.consider(KEY, at(74_000 + number * growth), 0, work)
        clock.now += seconds
        await _settle()
    assert work.begun == starts
    await background.close()


async def test_with_a_slow_summarizer_it_starts_before_the_early_mark() -> None:
    clock, slow, work = Clock(), Compression(), Compression()
    background = BackgroundCompressions(idle_seconds=LONG, clock=clock)

    async def grow(session: str) -> None:
        for tokens in (62_000, 64_000):
            assert at(tokens).action == "keep"
            background.consider(("", session), at(tokens), 0, work)
            clock.now += 5.0
            await _settle()

    await grow("before")
    assert work.begun == 0
    background.consider(("", "slow"), at(91_000), 0, slow)
    await _settle()
    clock.now += 300.0
    slow.open.set()
    await background.idle()
    await grow("after")
    assert work.begun == 1
    await background.close()


async def test_past_the_threshold_it_starts_at_once_and_once() -> None:
    work = Compression()
    background = BackgroundCompressions(idle_seconds=LONG)
    for tokens in (91_000, 92_000, 93_000):
        background.consider(KEY, at(tokens), 0, work)
        await _settle()
    assert work.begun == 1
    task = background.task(KEY)
    assert task is not None
    work.open.set()
    await task
    assert background.task(KEY) is None
    background.consider(KEY, at(94_000), 0, work)
    await _settle()
    assert work.begun == 2


async def test_a_session_that_is_idle_is_compressed_before_its_cache_expires() -> None:
    work = Compression()
    work.open.set()
    background = BackgroundCompressions(idle_seconds=0.05)
    background.consider(KEY, at(74_000), 0, Compression(), work)
    assert work.begun == 0
    async with asyncio.timeout(60):
        while not work.begun:  # noqa: ASYNC110 - a timer sets no event
            await asyncio.sleep(0.01)
    await background.close()


@dataclass
class Timers:
    """Timers that run when a test says so."""

    calls: list[Callable[[], None]] = field(default_factory=list)

    def __call__(self, _seconds: float, function: Callable[[], None]) -> Timers:
        self.calls.append(function)
        return self

    def cancel(self) -> None:
        self.calls.clear()

    def run(self) -> None:
        for each in self.calls:
            each()


@pytest.mark.parametrize(
    ("tokens", "begun"), [(60_000, (0, 1)), (74_000, (0, 1)), (91_000, (1, 0))]
)
async def test_an_idle_session_has_work_of_its_own(tokens: int, begun: tuple[int, int]) -> None:
    due, idle, timers = Compression(), Compression(), Timers()
    background = BackgroundCompressions(clock=Clock(), call_later=timers)
    background.consider(KEY, at(tokens), 0, due, idle)
    timers.run()
    await _settle()
    assert (due.begun, idle.begun) == begun
    await background.close()


async def test_an_idle_agent_loses_old_output_and_no_model_is_called(tmp_path: Path) -> None:
    timers = Timers()
    background = BackgroundCompressions(call_later=timers)

    def script(request: ProviderRequest) -> Message:
        place = len(request.messages)
        return assistant("Next.", call(f"call_{place}", "look", {"at": place}))

    messages: list[Any] = [{"role": "user", "content": "Look at everything."}]
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    sizes = list[int]()
    with StrictProvider(script) as provider:
        async with (
            stage(
                f"sqlite:///{tmp_path / 'proxy.db'}",
                background=True,
                provider_address=provider.address,
                compressions=background,
            ) as on,
            httpx.AsyncClient(base_url=on.address, headers=KEYS, timeout=60) as client,
        ):
            await on.engine.set("proxy_client_key", True)
            for step in range(20):
                body = {"model": "small", "messages": messages, "tools": tools, "max_tokens": 99}
                reply = await client.post("/v1/chat/completions", json=body)
                sizes.append(int(reply.headers["x-enfold-tokens-after"]))
                if reply.headers["x-enfold-decision"] == "reused":
                    break
                message = reply.json()["choices"][0]["message"]
                text = question(step, 700)
                result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"]}
                messages += [message, {**result, "content": text}]
                await on.proxy.idle()
                timers.run()
                await background.idle()
            (record,) = await on.engine.sessions(namespace=await on.namespace("k"))
            session = await on.engine.find(record.id, namespace=await on.namespace("k"))
            (snapshot,) = await session.summaries()
    assert provider.refused == []
    assert len(provider.requests) == len(sizes)
    assert snapshot.text is None
    assert sizes[-1] < sizes[-2] * 0.8
    limit = decide(Load(sizes[-2]), Limits(WINDOW, 500), Policy())
    assert limit.early_tokens * EARLIEST < sizes[-2] < limit.early_tokens


async def test_after_three_failures_it_is_left_to_the_request_that_needs_it() -> None:
    work = Compression(failures=10)
    background = BackgroundCompressions(idle_seconds=LONG)
    for tokens in range(91_000, 95_000, 500):
        background.consider(KEY, at(tokens), 0, work)
        await _settle()
    assert work.begun == 3


async def test_no_client_waits_for_a_summarizer_that_failed_in_the_background(
    tmp_path: Path,
) -> None:
    broken = ScriptedSummarizer(SummaryError("away"))
    background = BackgroundCompressions(idle_seconds=LONG)
    database = f"sqlite:///{tmp_path / 'proxy.db'}"
    messages: list[Any] = []
    async with (
        stage(database, background=True, compressions=background, broken=broken) as on,
        httpx.AsyncClient(base_url=on.address, headers=KEYS, timeout=60) as client,
    ):
        await on.engine.set("summarizer", "broken")
        await on.engine.set("on_failure", "local")
        for step in range(40):
            messages.append({"role": "user", "content": question(step)})
            before = len(broken.requests)
            body = {"model": "small", "messages": messages, "max_tokens": 99}
            reply = await client.post("/v1/chat/completions", json=body)
            if reply.headers["x-enfold-decision"] == "compressed":
                break
            messages.append(reply.json()["choices"][0]["message"])
            await on.proxy.idle()
            await background.idle()
        (record,) = await on.engine.sessions(namespace=await on.namespace("k"))
        session = await on.engine.find(record.id, namespace=await on.namespace("k"))
        (snapshot,) = await session.summaries()
    assert before == len(broken.requests) > 0
    assert snapshot.author == "local"


async def test_the_memory_of_background_runs_is_limited() -> None:
    work, clock = Compression(), Clock()
    background = BackgroundCompressions(idle_seconds=LONG, clock=clock)
    for number in range(3_000):
        background.consider(("", str(number)), at(74_000), 2**21, work, work)
    sizes = background.sizes()
    assert sizes == {
        "background_paces": 2_000,
        "background_waiting": 16,
        "background_running": 0,
    }
    assert background.is_cached(("", "2999"))
    clock.now = 301
    assert not background.is_cached(("", "2999"))
    await background.close()
    assert background.sizes()["background_waiting"] == 0
