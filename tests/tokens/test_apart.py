"""Counting apart: a process of low priority counts long content with the same result."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial

import pytest

from enfold.engine.state import MessageInput, prepare_process, read_drafts
from enfold.errors import InputError
from enfold.processes import LowPriorityProcess
from enfold.tokens import apart
from enfold.tokens.apart import count_apart, process_for, use_process


def prepare() -> None:
    """Do nothing."""


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - another process makes it true
            await asyncio.sleep(0.02)


async def _started(process: LowPriorityProcess) -> LowPriorityProcess:
    await _until(process.start)
    return process


@pytest.fixture
async def process() -> AsyncIterator[LowPriorityProcess]:
    process = LowPriorityProcess(prepare)
    yield await _started(process)
    process.stop()


@pytest.fixture
async def impatient() -> AsyncIterator[LowPriorityProcess]:
    """A process that ends after a second without work, and may start again after a second."""
    process = LowPriorityProcess(prepare, idle_seconds=1)
    yield process
    process.stop()


async def _process_id(process: LowPriorityProcess) -> int:
    while True:
        with suppress(BrokenProcessPool):  # on a slow machine it may end before it is called
            return await (await _started(process)).run(os.getpid)


@pytest.fixture
def as_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_Server", type("Server", (apart._Server,), {}))
    use_process(prepare_process)


@pytest.mark.skipif(sys.platform == "win32", reason="has other priorities")
async def test_it_has_a_low_priority(process: LowPriorityProcess) -> None:
    assert await process.run(os.getpid) != os.getpid()
    assert await process.run(os.nice, 0) > os.nice(0)


async def test_an_error_is_raised_here(process: LowPriorityProcess) -> None:
    with pytest.raises(InputError):
        await process.run(read_drafts, [{}], "chars4")
    assert await process.run(len, "abc") == 3


async def test_a_cancelled_call_does_not_stop_the_next_one(process: LowPriorityProcess) -> None:
    task = asyncio.create_task(process.run(time.sleep, 0.3))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(30):
        assert await process.run(len, "abc") == 3


async def test_it_ends_without_work_and_starts_again(impatient: LowPriorityProcess) -> None:
    first = await _process_id(impatient)
    await _until(lambda: not _exists(first))
    assert await _process_id(impatient) != first


async def test_it_starts_again_after_it_was_ended(impatient: LowPriorityProcess) -> None:
    first = await _process_id(impatient)
    with suppress(ProcessLookupError):
        os.kill(first, signal.SIGTERM)
    with pytest.raises(BrokenProcessPool):
        await impatient.run(len, "abc")
    assert await _process_id(impatient) != first


@pytest.mark.usefixtures("as_server")
async def test_long_content_is_counted_with_the_same_result() -> None:
    messages: list[MessageInput] = [{"role": "user", "content": "word fooBar " * 100_000}, "short"]
    read = partial(read_drafts, dialect="auto")
    expected = read_drafts(messages, "chars4")
    assert await count_apart(read, messages, "chars4") == expected  # while the process starts
    await _until(lambda: process_for(apart.LARGE) is not None)
    assert process_for(apart.LARGE - 1) is None
    assert await count_apart(read, messages, "chars4") == expected
    process = process_for(apart.LARGE)
    assert process is not None
    os.kill(await process.run(os.getpid), signal.SIGTERM)
    assert await count_apart(read, messages, "chars4") == expected


def test_a_program_that_is_no_server_starts_no_process() -> None:
    assert process_for(apart.LARGE) is None


def _exists(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False
