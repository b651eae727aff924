"""The forwarded view: the client's bytes, recorded edits, and the summary in its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from enfold.engine import Engine
from enfold.engine.recognition import ClientHistory, Sender, recognise_history
from enfold.records import ROOT
from enfold.server.proxy.assembly import OutgoingMessage, ViewFormat, assemble_view
from enfold.server.proxy.bodies import MessageFactsCache, parse_message
from enfold.wiring import open_engine

TOKENIZER = "o200k_base"


def _turn(number: int) -> list[Any]:
    """A question, a call, its long result and an answer, in keys of an order of their own."""
    call = {"id": f"c{number}", "type": "tool_use", "name": "read", "input": {"file": f"{number}"}}
    output = "\n".join(f"line {number} {i}" for i in range(200))
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": output}
    return [
        {"content": f"Question {number}", "role": "user"},
        {"content": [call], "role": "assistant"},
        {"content": [result], "role": "user"},
        {"content": f"Answer {number}", "role": "assistant"},
    ]


RAWS = [json.dumps(message).encode() for number in range(12) for message in _turn(number)]
QUESTION = json.dumps({"role": "user", "content": "And now?"}).encode()


async def _assembled(engine: Engine, raws: list[bytes], **settings: Any) -> list[OutgoingMessage]:
    """Return the view after a compression of all but the last message."""
    facts = await MessageFactsCache().facts(raws, "anthropic", TOKENIZER)
    contents = tuple(fact.content_hash for fact in facts)
    session = await engine.session("s", model="anthropic:claude-sonnet-4-5")
    messages = [parse_message(raw, "anthropic") for raw in raws[:-1]]
    ids = await session.append(*messages, after=ROOT)
    done = await session.at(ids[-1]).compress(share_across_branches=True, **settings)
    assert done.compressed
    history = ClientHistory(tuple(fact.role for fact in facts), contents)
    recognised = await engine.store.read(
        recognise_history, "", "s", history, Sender("openai:gpt-4o"), engine.static_settings
    )
    assert recognised.snapshot is not None
    wording = ViewFormat("anthropic", TOKENIZER)
    return assemble_view(recognised.snapshot, recognised.view_rows, raws, facts, history, wording)


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'assembly.db'}"


async def test_a_summary_joins_a_users_message_and_all_others_keep_their_bytes(
    database: str,
) -> None:
    async with open_engine(database) as engine:
        pieces = await _assembled(engine, [*RAWS, QUESTION])
    first, *rest = [piece.raw for piece in pieces]
    assert "[Previous conversation summary]" in json.dumps(json.loads(first))
    assert json.loads(first)["role"] == "user"
    assert rest == [*RAWS, QUESTION][-len(rest) :]
    assert len(rest) < len(RAWS) // 2


async def test_edits_are_sent_as_they_were_recorded(database: str) -> None:
    async with open_engine(database) as engine:
        pieces = await _assembled(engine, [*RAWS, QUESTION], strategy="truncation")
    assert len(pieces) == len(RAWS) + 1
    shorter = [piece.raw for piece, raw in zip(pieces, RAWS, strict=False) if piece.raw != raw]
    assert 0 < len(shorter) < len(RAWS)
    assert all(b"tool_result" in raw for raw in shorter)
