"""Recognition: a history that comes again is found by its own beginning."""

from __future__ import annotations

from enfold.engine import Engine, Session
from enfold.engine.recognition import (
    ClientHistory,
    ProxiedConversations,
    RecognisedHistory,
    Sender,
    recognise_history,
)
from enfold.identity import content_hash
from enfold.messages import Message
from enfold.records import ROOT
from enfold.testing import assistant, user
from enfold.wiring import open_engine

MODEL = "openai:gpt-4o"


def _history(*messages: Message) -> ClientHistory:
    roles = tuple(message.role for message in messages)
    return ClientHistory(roles, tuple(content_hash(message) for message in messages))


def _talk(name: str, turns: int) -> list[Message]:
    return [
        message
        for turn in range(turns)
        for message in (user(f"{name} asks {turn} " + "word " * 300), assistant(f"answer {turn}"))
    ]


async def _recognise(
    engine: Engine, history: ClientHistory, name: str | None = None
) -> RecognisedHistory:
    name = name or history.session_name()
    return await engine.store.read(
        recognise_history, "", name, history, Sender(MODEL), engine.static_settings
    )


def test_a_name_comes_from_all_up_to_the_first_reply() -> None:
    first, second = _talk("anna", 2), _talk("bert", 2)
    assert _history(first[0]).session_name() is None
    assert _history(*first[:2]).session_name() == _history(*first).session_name()
    assert _history(*first).session_name() != _history(*second).session_name()
    assert (
        _history(first[0], assistant("another answer")).session_name()
        != _history(*first).session_name()
    )


async def test_an_unrecorded_history_is_unknown(url: str) -> None:
    async with open_engine(url) as engine:
        recognised = await _recognise(engine, _history(*_talk("anna", 2)))
        assert (recognised.session, recognised.recorded, recognised.snapshot) == (None, 0, None)
        assert recognised.settings.share_across_branches


async def _recorded(engine: Engine, talk: list[Message]) -> Session:
    session = await engine.session(_history(*talk).session_name() or "", model=MODEL)
    await session.append(*talk, after=ROOT)
    return session


async def test_a_recorded_beginning_is_known_and_a_branch_parts_where_it_differs(url: str) -> None:
    talk = _talk("anna", 4)
    async with open_engine(url) as engine:
        session = await _recorded(engine, talk)
        longer = await _recognise(engine, _history(*talk, user("and now?")))
        assert (longer.session and longer.session.key, longer.recorded) == (session.key, 8)
        other = await _recognise(engine, _history(*talk[:5], assistant("changed"), user("go on")))
        assert other.recorded == 5


async def test_a_snapshot_applies_where_its_cutoff_is_on_the_path(url: str) -> None:
    talk = _talk("anna", 8)
    async with open_engine(url) as engine:
        session = await _recorded(engine, talk)
        done = await session.compress(share_across_branches=True, keep_tokens=400)
        assert done.compressed
        same = await _recognise(engine, _history(*talk[:-1], assistant("changed")))
        assert same.snapshot is not None
        assert same.snapshot.id == done.snapshot
        before = await _recognise(engine, _history(*talk[:3], assistant("changed")))
        assert before.snapshot is None


async def test_a_session_whose_summaries_are_left_again_and_again_is_diverging(url: str) -> None:
    start = _talk("anna", 1)
    async with open_engine(url) as engine:
        session = await engine.session(_history(*start).session_name() or "", model=MODEL)
        for number in range(3):
            line = [*start, *_talk(f"line {number}", 7)]
            recognised = await _recognise(engine, _history(*line))
            assert recognised.is_diverging == (number == 2)
            ids = await session.append(*line, after=ROOT)
            done = await session.at(ids[-1]).compress(share_across_branches=True, keep_tokens=400)
            assert done.compressed


async def test_an_undo_holds_until_the_user_says_something_more(url: str) -> None:
    talk = _talk("anna", 8)
    async with open_engine(url) as engine:
        session = await _recorded(engine, talk)
        await session.compress(share_across_branches=True, keep_tokens=400)
        await session.undo()
        assert not (await _recognise(engine, _history(*talk))).policy.automatic
        assert (await _recognise(engine, _history(*talk, user("more")))).policy.automatic


def test_identities_that_are_known_are_gone_on_from() -> None:
    history = _history(*_talk("anna", 3))
    again = ClientHistory(history.roles, history.content_hashes, history.ids[:4])
    assert again.ids == history.ids


async def test_settings_of_new_conversations_change_at_once_and_stay_while_messages_are_added(
    url: str,
) -> None:
    async with open_engine(url) as engine:
        conversations = ProxiedConversations(engine)
        nothing, sender = ClientHistory((), ()), Sender(MODEL)

        async def threshold() -> float:
            found = await conversations.recognise("", None, nothing, sender)
            return found.policy.threshold.share

        first = await threshold()
        session = await engine.session("chat", model=MODEL)
        before = engine.store.changes
        await session.append(user("hello"))
        assert engine.store.changes == before
        await engine.set("threshold", 0.5)
        assert (first, await threshold()) == (0.95, 0.5)
