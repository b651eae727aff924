"""Turns: the question is kept even if the answer fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any

import pytest

from enfold.engine import Session
from enfold.engine.results import Prepared
from enfold.engine.turns import (
    Answerer,
    Progress,
    QuestionStored,
    answer,
    ask,
    is_interrupted,
    unanswered,
    write_title,
)
from enfold.errors import (
    AuthenticationError,
    BadReplyError,
    BlockedError,
    NotFoundError,
    SummaryError,
    UnavailableError,
)
from enfold.llm.calls import Call, Connection, Delta, Gateway, ModelReply
from enfold.llm.costs import Prices
from enfold.messages import text_of
from enfold.testing import ScriptedGateway, assistant, call, reply
from enfold.text.sentences import shorten_title
from tests.engine.conftest import Bench, talk
from tests.gateways import Halting

CONNECTION = Connection("test", "small")


def by(gateway: Gateway) -> Answerer:
    return Answerer(gateway, CONNECTION)


async def stored_texts(session: Session) -> list[tuple[str, str]]:
    return [(message.role, text_of(message.parts)) for message in await session.messages()]


async def interrupted_turn(
    session: Session, gateway: Gateway, *, after: Callable[[Progress], bool]
) -> None:
    """A turn that is cancelled as soon as it tells what is waited for."""
    reached = asyncio.Event()
    turn = asyncio.create_task(
        ask(session, "Why?", by(gateway), lambda step: reached.set() if after(step) else None)
    )
    await reached.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


async def test_question_and_answer_are_stored_and_reported_as_they_come(bench: Bench) -> None:
    session = await bench.session()
    gateway = ScriptedGateway("It is the tide.")
    progress: list[Progress] = []
    done = await ask(session, "Why does it rise?", by(gateway), progress.append)
    assert await stored_texts(session) == [
        ("user", "Why does it rise?"),
        ("assistant", "It is the tide."),
    ]
    assert done.text == "It is the tide."
    assert done.ending == "stop"
    assert [type(each) for each in progress[:2]] == [QuestionStored, Prepared]
    assert "".join(each.text for each in progress if isinstance(each, Delta)) == "It is the tide."
    question, stored = await session.history()
    assert progress[0] == QuestionStored(question.id)
    assert done.message == stored.id
    assert done.seconds >= 0


async def test_the_model_is_sent_the_view_with_the_question_last(bench: Bench) -> None:
    session = await bench.session()
    gateway = ScriptedGateway("One.", "Two.")
    answerer = replace(by(gateway), system="Be brief.")
    await ask(session, "First?", answerer, lambda _: None)
    await ask(session, "Second?", answerer, lambda _: None)
    sent = gateway.calls[-1]
    assert [text_of(m.parts) for m in sent.messages] == ["First?", "One.", "Second?"]
    assert sent.system == "Be brief."
    assert gateway.connections == [CONNECTION, CONNECTION]


async def test_a_due_compression_runs_before_the_model_call(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 40)
    gateway = ScriptedGateway("Fine.")
    done = await ask(session, "And now?", by(gateway), lambda _: None)
    assert done.prepared.compression is not None
    assert done.prepared.compression.compressed
    assert "They agreed on the plan." in text_of(gateway.calls[0].messages[0].parts)


@pytest.mark.parametrize(
    ("provider", "role"),
    [("openai", "system"), ("compatible", "system"), ("anthropic", "user"), ("google", "user")],
)
async def test_a_summary_has_no_authority(provider: str, role: str, bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    await session.compress()
    gateway = ScriptedGateway("Fine.")
    await ask(session, "And?", Answerer(gateway, Connection(provider, "m")), lambda _: None)
    first = gateway.calls[0].messages[0]
    assert first.role == role
    assert "They agreed on the plan." in text_of(first.parts)
    assert text_of(gateway.calls[0].messages[-1].parts) == "And?"


async def test_usage_is_recorded_with_what_it_cost(bench: Bench) -> None:
    session = await bench.session()
    answerer = replace(by(ScriptedGateway("Yes.")), prices=Prices(1.0, 2.0), profile="work")
    done = await ask(session, "Really?", answerer, lambda _: None)
    assert done.usage.input_tokens is not None
    assert done.usage.output_tokens is not None
    expected = (done.usage.input_tokens + 2 * done.usage.output_tokens) / 1_000_000
    assert done.cost == pytest.approx(expected)
    question, stored = await session.history()
    assert (stored.input_tokens, stored.output_tokens) == (
        done.usage.input_tokens,
        done.usage.output_tokens,
    )
    assert (question.input_tokens, question.output_tokens) == (None, None)
    (total,) = await session.usage()
    assert (total.kind, total.profile, total.model) == ("reply", "work", "test:small")
    assert total.cost == pytest.approx(expected)


LONG = "Could you help me to find out why the tide tables of the harbour are wrong in May?"


async def test_a_model_names_a_conversation_whose_first_words_are_too_long(bench: Bench) -> None:
    session = await bench.engine.session("tides", title=shorten_title(LONG))
    gateway = ScriptedGateway("They use winter time.", "“Wrong tide tables in May.”\n")
    await ask(session, LONG, by(gateway), lambda _: None)
    assert await write_title(session, by(gateway)) == "Wrong tide tables in May"
    assert (await session.record()).title == "Wrong tide tables in May"
    assert LONG in text_of(gateway.calls[-1].messages[0].parts)
    assert {each.kind for each in await session.usage()} == {"reply", "title"}
    assert await write_title(session, by(gateway)) is None  # it has a title of its own now


@pytest.mark.parametrize(
    ("first", "title", "settings"),
    [
        ("Why?", "Why?", {}),
        (LONG, "My own title", {}),
        (LONG, shorten_title(LONG), {"model_titles": False}),
    ],
    ids=["short enough", "named by a person", "turned off"],
)
async def test_a_title_stays(
    first: str, title: str, settings: dict[str, Any], bench: Bench
) -> None:
    session = await bench.engine.session("tides", title=title)
    await session.configure(**settings)
    gateway = ScriptedGateway("They use winter time.")
    await ask(session, first, by(gateway), lambda _: None)
    assert await write_title(session, by(gateway)) is None
    assert (await session.record()).title == title


async def test_a_cost_without_prices_is_unknown(bench: Bench) -> None:
    session = await bench.session()
    assert (await ask(session, "?", by(ScriptedGateway()), lambda _: None)).cost is None


async def test_an_interrupted_answer_is_kept_and_marked(bench: Bench) -> None:
    session = await bench.session()
    gateway = Halting("It is ", "the ti")
    await interrupted_turn(session, gateway, after=lambda step: step == Delta("the ti"))
    assert gateway.closed
    assert await stored_texts(session) == [("user", "Why?"), ("assistant", "It is the ti")]
    question, partial = await session.messages()
    assert is_interrupted(partial)
    assert not is_interrupted(question)
    assert await unanswered(session) is None
    done = await ask(session, "Go on.", by(ScriptedGateway("The tide.")), lambda _: None)
    assert not is_interrupted((await session.messages())[-1])
    assert done.text == "The tide."


async def test_an_answer_stopped_before_its_first_word_leaves_the_question(bench: Bench) -> None:
    session = await bench.session()
    await interrupted_turn(session, Halting(), after=lambda step: isinstance(step, QuestionStored))
    assert await stored_texts(session) == [("user", "Why?")]
    done = await answer(session, by(ScriptedGateway("Because.")), lambda _: None)
    assert done.text == "Because."
    assert await stored_texts(session) == [("user", "Why?"), ("assistant", "Because.")]


async def test_a_failure_half_way_drops_what_came_and_keeps_the_question(bench: Bench) -> None:
    session = await bench.session()
    failing = Halting("It is", error=UnavailableError("the line is down"))
    with pytest.raises(UnavailableError):
        await ask(session, "Why?", by(failing), lambda _: None)
    assert await stored_texts(session) == [("user", "Why?")]
    waiting = await unanswered(session)
    assert waiting is not None
    gateway = ScriptedGateway("Because.")
    await answer(session, by(gateway), lambda _: None)
    assert [text_of(m.parts) for m in gateway.calls[0].messages] == ["Why?"]
    assert await stored_texts(session) == [("user", "Why?"), ("assistant", "Because.")]
    assert await session.usage()


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (assistant(" \n"), "returned an empty answer"),
        (assistant("Let me look.", call("c1")), "called a tool"),
    ],
    ids=["empty", "a tool that was not offered"],
)
async def test_an_invalid_reply_is_refused(message: object, words: str, bench: Bench) -> None:
    session = await bench.session()

    async def given(connection: Connection, model_call: Call) -> ModelReply:
        return replace(reply("", connection, model_call), message=message)  # type: ignore[arg-type] # a table of cases

    with pytest.raises(BadReplyError, match=words):
        await ask(session, "Why?", by(ScriptedGateway(given)), lambda _: None)
    assert await stored_texts(session) == [("user", "Why?")]


async def test_a_stream_that_ends_without_a_reply_is_no_answer(bench: Bench) -> None:
    class Mute(Halting):
        async def stream(
            self, _connection: Connection, _call: Call
        ) -> AsyncGenerator[Delta | ModelReply, None]:
            yield Delta("It")

    session = await bench.session()
    with pytest.raises(BadReplyError, match="without completing"):
        await ask(session, "Why?", by(Mute()), lambda _: None)
    assert await stored_texts(session) == [("user", "Why?")]


async def test_a_compression_that_fails_keeps_the_question_and_sends_nothing(
    bench: Bench,
) -> None:
    session = await bench.session()
    await talk(session, 40)
    before = await stored_texts(session)
    bench.summarizer.script(SummaryError("the summarizer is away"))
    gateway = ScriptedGateway("Fine.")
    with pytest.raises(BlockedError):
        await ask(session, "And now?", by(gateway), lambda _: None)
    assert await stored_texts(session) == [*before, ("user", "And now?")]
    assert gateway.calls == []
    await session.acknowledge()
    done = await answer(session, by(gateway), lambda _: None)
    assert done.prepared.warnings
    assert await stored_texts(session) == [*before, ("user", "And now?"), ("assistant", "Fine.")]


async def test_settings_hold_for_one_turn(bench: Bench) -> None:
    await bench.engine.set("background", False)
    session = await bench.session()
    await talk(session, 25)
    gateway = ScriptedGateway("Fine.")
    kept = await ask(session, "One?", by(gateway), lambda _: None)
    assert kept.prepared.compression is None
    summarized = await ask(session, "Two?", by(gateway), lambda _: None, max_tokens=2_500)
    assert summarized.prepared.compression is not None


async def test_a_session_without_a_question_cannot_be_answered(bench: Bench) -> None:
    session = await bench.session()
    with pytest.raises(NotFoundError, match="nothing waits"):
        await answer(session, by(ScriptedGateway()), lambda _: None)


async def test_a_key_that_is_refused_leaves_the_question(bench: Bench) -> None:
    session = await bench.session()
    refused = AuthenticationError("test does not accept the key")
    with pytest.raises(AuthenticationError):
        await ask(session, "Why?", by(ScriptedGateway(refused)), lambda _: None)
    assert await stored_texts(session) == [("user", "Why?")]


async def test_a_turn_past_the_early_mark_does_not_wait_for_its_compression(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 25)
    gateway = ScriptedGateway("Fine.", "Fine.")
    first = await ask(session, "One?", by(gateway), lambda _: None)
    assert (first.prepared.decision.action, first.prepared.compression) == ("should", None)
    async with asyncio.timeout(60):
        while not await session.summaries():  # noqa: ASYNC110 - a table
            await asyncio.sleep(0.01)
    second = await ask(session, "Two?", by(gateway), lambda _: None)
    assert second.prepared.view.summary is not None
    assert second.prepared.compression is None


async def test_a_view_for_a_program_is_compressed_first_by_default(
    bench: Bench,
) -> None:
    session = await bench.session()
    await talk(session, 31)
    early = await session.prepare(wait=False)
    assert (early.decision.action, early.compression) == ("must", None)
    assert (await bench.session("other")).id != session.id
    other = await bench.session("other")
    await talk(other, 31)
    assert (await other.prepare()).compression is not None
