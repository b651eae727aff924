"""Engines in the background: shared by address, used from threads and loops, opened and closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from enfold.adapters import engines as background
from enfold.engine import Engine
from enfold.errors import ConfigError, EnfoldError, NotFoundError


@pytest.fixture
def address(database: str) -> Iterator[str]:
    yield database
    background.close(database)


async def _names(engine: Engine) -> list[str]:
    return [each.id for each in await engine.sessions()]


async def _make(engine: Engine) -> str:
    return (await engine.session("chat")).id


def test_an_address_has_one_engine(address: str) -> None:
    first = background.engine_at(address)
    assert background.engine_at(address) is first
    assert first.run(_make) == "chat"
    assert first.run(_names) == ["chat"]


def test_many_threads_open_it_once(address: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        engines = list(threads.map(lambda _: background.engine_at(address), range(16)))
        assert len(set(map(id, engines))) == 1
        assert set(threads.map(lambda engine: engine.run(_make), engines)) == {"chat"}


async def test_a_loop_goes_on_while_it_waits(address: str) -> None:
    engine = background.engine_at(address)
    given = await asyncio.gather(*(engine.run_async(_make) for _ in range(5)))
    assert given == ["chat"] * 5


def test_errors_of_the_thread_are_raised_in_the_caller(address: str) -> None:
    async def find(engine: Engine) -> None:
        await engine.find("nobody")

    with pytest.raises(NotFoundError, match="nobody"):
        background.engine_at(address).run(find)


def test_a_closed_engine_is_opened_again(address: str) -> None:
    before = background.engine_at(address)
    before.run(_make)
    background.close(address)
    background.close(address)
    after = background.engine_at(address)
    assert after is not before
    assert after.run(_names) == ["chat"]


def test_an_address_that_cannot_be_opened_leaves_no_thread_behind() -> None:
    def threads() -> int:
        return sum(thread.name == "enfold" for thread in threading.enumerate())

    before = threads()
    for _ in range(2):
        with pytest.raises(EnfoldError) as raised:
            background.engine_at("mongodb://nowhere")
        assert isinstance(raised.value, ConfigError)
    assert threads() == before
