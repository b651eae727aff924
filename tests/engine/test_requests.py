"""The parts of a request: its count, its summary, and pins set by hand or automatically."""

from __future__ import annotations

import pytest

from enfold import tokens, wire
from enfold.engine import Session
from enfold.messages import Conversation
from enfold.summaries import HEADING
from enfold.tokens import Tokenizer, count_messages, tokenizers
from tests.engine.conftest import Bench, talk


async def full(bench: Bench, id: str) -> Session:
    """A session over the threshold: 40 turns of about 110 tokens."""
    session = await bench.session(id)
    await talk(session, 40)
    return session


async def test_the_whole_history_is_counted_before_each_request(bench: Bench) -> None:
    session = await bench.session()
    for turn in range(12):  # from far below the threshold to past a compression
        await talk(session, 4, start=4 * turn)
        prepared = await session.prepare("And now?")
        load = prepared.decision.load
        assert load.history + load.pending == sum(count_messages(prepared.messages))
    assert prepared.view.summary is not None


@pytest.mark.parametrize("dialect", wire.DIALECTS)
@pytest.mark.parametrize("role", ["system", "user"])
async def test_a_request_is_summary_recent_messages_and_input(
    bench: Bench, dialect: str, role: str
) -> None:
    session = await full(bench, "chat")
    await session.configure(summary_role=role)
    prepared = await session.prepare("And now?")
    sent = wire.get(dialect).parse(prepared.render(dialect)).messages
    holding = [message for message in sent if HEADING in str(message)]
    assert [message.role for message in holding] == [
        role if dialect not in {"anthropic", "gemini"} else "user"
    ]
    assert sent[0] is holding[0]
    assert "And now?" in str(sent[-1])
    recent = str(sent[1:-1])
    turns = [turn for turn in range(40) if f"Answer {turn}:" in recent]
    assert turns == list(range(turns[0], 40))  # a run up to the newest, and not all
    assert turns[0] > 0


async def test_a_summary_keeps_its_place_in_either_role(bench: Bench) -> None:
    session = await full(bench, "chat")
    as_system = (await session.prepare("And now?")).render("openai")
    await session.configure(summary_role="user")
    as_user = (await session.prepare("And now?")).render("openai")
    (at,) = (i for i, message in enumerate(as_system) if message["role"] == "system")
    assert as_user == [{**m, "role": "user"} if i == at else m for i, m in enumerate(as_system)]


async def test_by_hand_and_automatically_the_same_is_done(bench: Bench) -> None:
    by_hand, automatic = await full(bench, "by-hand"), await full(bench, "automatic")
    done = await by_hand.compress()
    prepared = await automatic.prepare()
    outcome = prepared.compression
    assert outcome is not None
    first, second = bench.summarizer.requests
    assert [m.parts for m in first.messages] == [m.parts for m in second.messages]
    assert (first.style, first.max_tokens) == (second.style, second.max_tokens)
    assert (done.messages, done.summary) == (outcome.messages, outcome.summary)
    assert done.tokens_after == outcome.tokens_after
    for _ in range(3):  # all later requests are built in the same way
        hand, auto = await by_hand.prepare("And now?"), await automatic.prepare("And now?")
        assert hand.render("openai") == auto.render("openai")
        assert hand.view.summary is not None
        await talk(by_hand, 2, start=100)
        await talk(automatic, 2, start=100)


async def test_a_thousand_tokens_stay_by_default(bench: Bench) -> None:
    model = "test:plain"
    await bench.engine.models.edit(model, max_input=4_800, max_output=1_000)
    session = await bench.engine.session("chat", model=model)
    await talk(session, 60, words=30)
    prepared = await session.prepare()
    counts = [shown.tokens for shown in prepared.view.shown[prepared.view.summary_at :]]
    summarized = len(await session.messages()) - len(counts)
    assert sum(counts) <= 1_000
    assert summarized > 0
    rows = await session.history(limit=len(counts) + 1)
    assert sum(row.tokens for row in rows) > 1_000  # one more would not fit


async def test_only_new_messages_are_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    library = tokens.get().load()

    def recording(texts: list[str]) -> list[int]:
        counted.extend(texts)
        return library(texts)

    session = await bench.session()
    await talk(session, 20)
    fresh = Tokenizer("o200k_base", lambda: recording)  # nothing is in its memo
    monkeypatch.setitem(tokenizers._TOKENIZERS, "o200k_base", fresh)
    await session.status()
    await session.prepare()
    assert counted == []
    await session.append("What is new?")
    await session.status("And now?")
    await session.prepare("And now?")
    assert sorted(counted) == ["And now?", "What is new?"]


async def test_nothing_of_a_session_is_in_another(bench: Bench) -> None:
    one, other = await full(bench, "one"), await bench.session("other")
    await one.compress()
    await talk(other, 3, start=500)
    prepared = await other.prepare("And now?")
    assert prepared.view.summary is None
    assert "Question 39" not in str(Conversation(prepared.messages))
    assert not await other.search('"Question 39"')
    assert not await other.summaries()
