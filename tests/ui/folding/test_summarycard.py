"""The summary card: what a compression says of itself in the chat."""

from __future__ import annotations

from pathlib import Path

from enfold.engine import Engine
from enfold.ui.folding.summarycard import folded_messages
from tests.ui.talks import in_engine, talk


def test_it_knows_the_messages_that_it_stands_for(tmp_path: Path) -> None:
    async def places(engine: Engine) -> tuple[list[int], int]:
        session = await engine.session("talk")
        await talk(session, 30)
        done = await session.compress(keep_first=2)
        (snapshot,) = await session.summaries()
        rows = await folded_messages(engine, session, snapshot)
        return [row.depth for row in rows], done.messages

    depths, folded = in_engine(tmp_path / "chats.db", places)
    assert depths == list(range(3, 3 + folded))
