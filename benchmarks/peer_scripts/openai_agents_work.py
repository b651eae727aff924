"""OpenAI's Agents SDK: a turn of a session in SQLite."""

import asyncio
import tempfile
from pathlib import Path

from agents import SQLiteSession
from stopwatch import KEPT, start, turns

BATCH = 10_000


def one_turn(messages):
    """Measure a turn: the file has everything, and the newest messages are read."""
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory() as folder:
        session = SQLiteSession("s", Path(folder) / "s.db")
        for first in range(0, len(messages), BATCH):
            loop.run_until_complete(session.add_items(messages[first : first + BATCH]))

        async def go(question, answer):
            await session.add_items([question, answer])
            return await session.get_items(limit=KEPT)

        result = turns(lambda *arguments: loop.run_until_complete(go(*arguments)), "file")
        session.close()
    loop.close()
    return result


start({"turn": {"OpenAI Agents SQLiteSession, newest 100": one_turn}})
