"""One of several processes that all find the same session too full at the same moment.

    python -m tests.engine.rivals URL NAME

Says `ready`, waits for a line, prepares the session, and prints how often it asked its summarizer
and whose summary it would send.
"""

from __future__ import annotations

import asyncio
import sys

import enfold
from enfold.summaries import SummaryRequest
from enfold.testing import ScriptedSummarizer


async def main(url: str, name: str) -> None:
    """Prepare the session that the test filled."""

    async def slow(_request: SummaryRequest) -> str:
        await asyncio.sleep(0.3)
        return f"Written by {name}."

    summarizer = ScriptedSummarizer(slow)
    async with enfold.open(url, summarizers={"scripted": summarizer}) as engine:
        session = await engine.find("contested")
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        prepared = await session.prepare("And now?")
    sys.stdout.write(f"{len(summarizer.requests)} {prepared.view.summary}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
