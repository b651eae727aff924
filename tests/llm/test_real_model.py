"""A real model on this machine, asked through the gateway: answers, streams, usage, overflow."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from enfold.errors import ContextOverflowError, SummaryError
from enfold.llm.calls import Call, Connection, Delta, ModelReply
from enfold.llm.gateway import ModelGateway
from enfold.messages import Message
from enfold.testing import assistant, user
from enfold.tokens import count_messages
from enfold.wiring import open_engine
from tests.realmodel import SLOT_WINDOW

pytestmark = pytest.mark.model


@pytest.fixture
async def gateway() -> AsyncIterator[ModelGateway]:
    async with ModelGateway() as opened:
        yield opened


@pytest.fixture
def connection(model_url: str) -> Connection:
    return Connection("compatible", "smollm2", base_url=model_url, timeout=120)


async def test_an_answer_comes_with_what_it_used(
    gateway: ModelGateway, connection: Connection
) -> None:
    call = Call((user("Say hello."),), max_tokens=12, temperature=0.0)
    first, second = [await gateway.complete(connection, call) for _ in range(2)]
    assert first.message.parts == second.message.parts
    assert first.usage.input_tokens
    assert first.usage.input_tokens > 2
    assert 0 < (first.usage.output_tokens or 0) <= 12


async def test_a_stream_adds_up_to_the_answer(
    gateway: ModelGateway, connection: Connection
) -> None:
    call = Call((user("Count to five."),), max_tokens=24, temperature=0.0)
    pieces = [piece async for piece in gateway.stream(connection, call)]
    whole = pieces[-1]
    assert isinstance(whole, ModelReply)
    text = "".join(piece.text for piece in pieces if isinstance(piece, Delta))
    assert text == "".join(part.text for part in whole.message.parts if hasattr(part, "text"))
    assert len(pieces) > 3
    assert whole.ending == "length"


async def test_more_than_the_window_is_an_overflow(
    gateway: ModelGateway, connection: Connection
) -> None:
    call = Call((user("word " * (2 * SLOT_WINDOW)),), max_tokens=8)
    with pytest.raises(ContextOverflowError):
        await gateway.complete(connection, call)


async def test_our_count_is_near_what_the_model_counts(
    gateway: ModelGateway, connection: Connection
) -> None:
    text = "The parser reads the file line by line and keeps what it does not know. " * 20
    messages = (user(text), assistant("I see."), user("Go on."))
    reply = await gateway.complete(connection, Call(messages, max_tokens=4))
    ours = sum(count_messages(messages, "o200k_base"))
    assert reply.usage.input_tokens == pytest.approx(ours, rel=0.25)


@pytest.mark.timeout(600)  # a busy machine reads a few tokens a second
async def test_the_model_writes_a_summary_or_the_session_stays_as_it_was(
    model_url: str, tmp_path: Path
) -> None:
    async with open_engine(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
        fields = {
            "provider": "compatible",
            "model": "smollm2",
            "base_url": model_url,
            "prompt": "Say in two sentences what was talked about.",
        }
        await engine.profiles.save("local-model", fields)
        assert (await engine.profiles.test("local-model")).usage.output_tokens
        assert (await engine.profiles.discover("local-model")).max_input < 10_000
        session = await engine.session("s", profile="local-model")
        messages = [each for turn in range(6) for each in _turn(turn)]
        await session.append(*messages)
        try:
            done = await session.compress(keep_tokens=40, summary_tokens=100, timeout=500)
        except SummaryError:
            # A model this small does not always come to an end. That must cost nothing.
            shown = (await session.prepare()).messages
            assert [each.parts for each in shown] == [each.parts for each in messages]
            return
        assert "smollm2" in (done.author or "")
        assert done.tokens_after < done.tokens_before
        assert [each.parts for each in await session.messages()] == [
            each.parts for each in messages
        ]


def _turn(number: int) -> tuple[Message, Message]:
    answer = f"Module {number} reads the file config{number}.toml and checks it."
    return user(f"Question {number}: what does module number {number} do?"), assistant(answer)
