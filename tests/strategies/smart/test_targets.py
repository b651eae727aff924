"""Targets: runs of strategies that summarize end between 80 and 100 % of the target."""

from __future__ import annotations

from typing import Any

import pytest

import enfold
from enfold import wire
from enfold.messages import Conversation, Message
from enfold.testing import ScriptedSummarizer, assistant, user
from tests.strategies.lossless.sessions import Session, code, numbered

SHARES = (0.1, 0.25, 0.5, 0.75)
WAYS: tuple[dict[str, Any], ...] = (
    {"strategy": "native"},
    {"preset": "agent"},
    {"preset": "balanced"},
    {"preset": "quality"},
    {"preset": "cost"},
)


def loop() -> list[Message]:
    """One prompt and a long tool loop, as coding agents write it."""
    session = Session()
    for number in range(20):
        session.read(f"src/module_{number}.py", numbered(code(f"name{number}", 40)))
        session.run(f"make test-{number}", "\n".join(f"{n} of {number} passed" for n in range(60)))
        session.read(f"src/module_{number}.py", numbered(code(f"name{number}", 40)))
    return session.messages


def meeting() -> list[Message]:
    """A discussion in which every message is a person's."""
    return [
        user(f"Speaker {n % 4}: The design of part {n} costs {n * 37} euros. We never order it.")
        for n in range(160)
    ]


def chat() -> list[Message]:
    """Questions and long answers."""
    found: list[Message] = []
    for n in range(30):
        answer = " ".join(f"Point {n}.{m} depends on the value {m * 91}." for m in range(25))
        found += (user(f"How does step {n} work with file_{n}.txt?"), assistant(answer))
    return [*found, user("And now?")]


def long_task() -> list[Message]:
    """A first message that is longer than a small target, and a short loop."""
    task = " ".join(f"The report must name item {n} and its owner {n * 13}." for n in range(300))
    session = Session()
    session.messages[0] = user(task)
    for number in range(8):
        session.read(f"data_{number}.txt", "\n".join(code(f"row{number}", 30)))
    return session.end()


@pytest.mark.parametrize("make", [loop, meeting, chat, long_task])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: str(next(iter(way.values()))))
def test_a_target_is_reached_and_used(make: Any, way: dict[str, Any]) -> None:
    body = wire.render(Conversation(tuple(make())), "openai")
    tokens = enfold.count(body)
    for share in SHARES:
        target = int(tokens * share)
        done = enfold.condense_sync(body, target=target, **way)
        assert 0.8 * target <= enfold.count(done.messages) <= target, share
        assert done.report.tokens_after == enfold.count(done.messages)
        assert enfold.restore(done.messages, done.ledger) == body


@pytest.mark.parametrize("strategy", ["lossless", "truncation"])
def test_strategies_without_summaries_put_nothing_back(strategy: str) -> None:
    body = wire.render(Conversation(tuple(loop())), "openai")
    target = int(enfold.count(body) * 0.9)
    done = enfold.condense_sync(body, strategy, target=target)
    assert enfold.count(done.messages) <= target
    assert done.report.steps[-1].tokens_after == done.report.tokens_after


async def test_passes_that_never_summarize_ask_no_model_for_a_target() -> None:
    writer = ScriptedSummarizer("In short.")
    body = wire.render(Conversation(tuple(chat())), "openai")
    await enfold.condense(
        body, "smart", config={"passes": []}, target=enfold.count(body) // 4, summarizer=writer
    )
    assert not writer.requests


async def test_a_config_that_spares_too_much_costs_one_summary() -> None:
    writer = ScriptedSummarizer("They talked about every step and agreed on the plan. " * 40)
    body = wire.render(Conversation(tuple(chat())), "openai")
    spare = {
        "id": "fold",
        "name": "Fold",
        "selection": {"type": "preserve_percent", "keepPercentage": 90},
        "mode": "batch",
        "batchConfig": {"operation": "summarize"},
    }
    target = enfold.count(body) // 4
    done = await enfold.condense(
        body, "smart", config={"passes": [spare]}, target=target, summarizer=writer
    )
    assert len(writer.requests) == 1
    assert 0.8 * target <= enfold.count(done.messages) <= target
