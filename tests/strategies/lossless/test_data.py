"""Real sessions of agents: restored exactly, smaller by as much as was promised."""

from __future__ import annotations

from pathlib import Path

import pytest

from enfold import wire
from enfold.condensation import validate
from enfold.history import orphans
from enfold.jsontext import loads
from enfold.messages import Conversation
from enfold.retention import Retention
from enfold.strategies.lossless import shorten
from enfold.strategies.lossless.config import LosslessConfig
from enfold.tokens import count_conversation
from tests.strategies.lossless.sessions import plan_for, restores, view

SETS = ("pi_sessions", "cc_viewer_samples", "agentv_claude", "swe_agent_traj", "cc_cipherbox")
AS_USUAL = Retention("messages", 3, keep_first=1)


@pytest.mark.parametrize("name", SETS)
def test_every_session_is_restored_and_none_is_larger(data_dir: Path, name: str) -> None:
    file = data_dir / f"{name}.jsonl"
    if not file.exists():
        pytest.skip(f"there is no {file}")
    for line in file.read_bytes().splitlines():
        conversation = wire.parse(loads(line)["messages"])
        plan = plan_for(conversation.messages, AS_USUAL)
        answer = shorten(plan)
        after = view(plan, answer)
        assert orphans(after) == orphans(conversation.messages)
        assert answer.tokens(plan) <= plan.tokens
        if not answer.is_unchanged:
            validate(plan, answer)
            restores(conversation, answer, after)


@pytest.mark.parametrize(("obsolete", "share"), [(False, 0.20), (True, 0.24)])
def test_a_long_session_becomes_much_smaller(data_dir: Path, obsolete: bool, share: float) -> None:
    file = data_dir / "pi_sessions.jsonl"
    if not file.exists():
        pytest.skip(f"there is no {file}")
    conversation = wire.parse(loads(file.read_bytes().splitlines()[0])["messages"])
    plan = plan_for(conversation.messages, AS_USUAL)
    answer = shorten(plan, LosslessConfig(remove_obsolete_state=obsolete))
    before, after = (
        count_conversation(Conversation(tuple(messages))).by_part["tool_result"]
        for messages in (plan.messages, view(plan, answer))
    )
    assert after < before * (1 - share)
