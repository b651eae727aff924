"""Conversations in a test's database, written before a browser looks at them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import enfold
from enfold.engine import Engine, Session
from enfold.testing import assistant, call, result, user

Given = TypeVar("Given")


def in_engine(database: Path, work: Callable[[Engine], Awaitable[Given]]) -> Given:
    """Return the result of the work, done with a separate engine over the database.

    In a thread of its own too: the browser's driver has the loop of this one.
    """

    async def opened() -> Given:
        async with enfold.open(f"sqlite:///{database}") as engine:
            return await work(engine)

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(lambda: asyncio.run(opened())).result()


async def talk(session: Session, turns: int, *, words: int = 40, start: int = 0) -> None:
    """Return a number of questions and answers, each with its path and number."""
    messages = [
        message
        for turn in range(start, start + turns)
        for message in (
            user(f"Question {turn}: what is in docs/file_{turn}.md? " + "alpha " * words),
            assistant(f"Answer {turn}: {turn * 7 + 100} euros. " + "beta " * words),
        )
    ]
    await session.append(*messages)


async def read_files(session: Session, number: int = 8) -> None:
    """A talk in which the same few files are read again and again."""
    for n in range(number):
        lines = "\n".join(f"{i:>3} line {i} of file {n % 3}" for i in range(60))
        await session.append(
            user(f"Read file {n % 3}."),
            assistant("", call(f"c{n}", "read", {"path": f"a{n % 3}.txt"})),
            result(f"c{n}", lines),
            assistant("It is read."),
        )
