"""Conversations that were condensed before: no marker is left whose target is gone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import enfold
from enfold import wire
from enfold.messages import Conversation, Message, ToolResult
from enfold.strategies.lossless.markers import Names, find_markers
from enfold.strategies.lossless.texts import texts_of_messages
from enfold.testing import ScriptedSummarizer, assistant, user
from tests.strategies.lossless.sessions import Session, code, numbered, sessions

NEXT = ("native", "truncation", "smart", "lossless")
APP = code("app", 60)


def dangling(messages: tuple[Message, ...]) -> list[str]:
    """The markers that point to nothing in view, or to another message that cannot show it."""
    texts = texts_of_messages(messages)
    names = Names(texts)
    return [
        marker.name
        for holder, text in enumerate(texts)
        if text.is_result
        for marker in find_markers(text.text)
        if marker.name and not names.targets(marker.name, holder)
    ]


def tail() -> list[Message]:
    return [user("Go on."), assistant("I do."), user("And on."), assistant("I did.")]


@pytest.mark.parametrize("strategy", NEXT)
async def test_a_marker_gets_its_content_back_when_its_target_leaves(strategy: str) -> None:
    session = Session().read("a.py", numbered(APP))
    session.messages += tail() * 3
    session.read("a.py", numbered(APP))
    writer = ScriptedSummarizer("In short.")
    given = wire.render(Conversation(tuple(session.end())), "openai")
    once = await enfold.condense(given, "lossless")
    assert "already provided above" in json.dumps(once.messages)
    more = [*once.messages, *wire.render(Conversation(tuple(tail())), "openai")]
    config: dict[str, Any] = {"keepLast": 10} if strategy == "native" else {}
    twice = await enfold.condense(more, strategy, config=config or None, summarizer=writer)
    after = wire.parse(twice.messages).messages
    assert not dangling(after)
    results = [str(part) for m in after for part in m.parts if isinstance(part, ToolResult)]
    if strategy == "native":
        assert "app_59 = compute" in results[-1]
    assert enfold.restore(twice.messages, twice.ledger) == more
    assert enfold.restore(more, once.ledger)[: len(given)] == given


async def test_content_that_is_put_back_counts_towards_the_target() -> None:
    session = Session().read("a.py", numbered(APP))
    session.messages += tail() * 9
    session.read("a.py", numbered(APP))
    once = await enfold.condense(
        wire.render(Conversation(tuple(session.end())), "openai"), "lossless"
    )
    more = [*once.messages, *wire.render(Conversation(tuple(tail())), "openai")]
    target = enfold.count(more) * 2 // 3
    twice = await enfold.condense(more, "native", target=target)
    assert not dangling(wire.parse(twice.messages).messages)
    assert twice.report.tokens_after <= target
    assert enfold.restore(twice.messages, twice.ledger) == more


@given(sessions(), st.sampled_from(NEXT), st.sampled_from(["openai", "anthropic", "enfold"]))
@settings(max_examples=25)
async def test_no_chain_leaves_a_marker_without_its_target(
    messages: list[Message], strategy: str, dialect: str
) -> None:
    given_messages = wire.render(Conversation(tuple(messages)), dialect)
    before = dangling(wire.parse(given_messages, dialect).messages)
    once = await enfold.condense(wire.parse(given_messages, dialect), "lossless")
    added = wire.render(Conversation(tuple(tail())), dialect)
    twice = await enfold.condense(
        wire.parse([*once.messages, *added], dialect),
        strategy,
        keep_tokens=400,
        summarizer=ScriptedSummarizer("In short."),
    )
    after = dangling(wire.parse(twice.messages, dialect).messages)
    assert len(after) <= len(before)


async def test_a_stored_chain_leaves_no_marker_without_its_target() -> None:
    """The target of a marker is summarized later; the result that pointed to it is shown whole."""
    session = Session().read("c.py", numbered(code("third", 60))).read("a.py", numbered(APP))
    session.messages += tail() * 3
    session.read("a.py", numbered(APP)).read("b.py", numbered(code("other", 60)))
    writers = {"scripted": ScriptedSummarizer("They looked at the project.")}
    async with enfold.open("sqlite:///:memory:", summarizers=writers) as engine:
        await engine.models.edit("test:model", max_input=100_000, max_output=4_000)
        await engine.set("summarizer", "scripted")
        stored = await engine.session("chain", model="test:model")
        await stored.append(*session.end())
        first = await stored.compress(strategy="lossless")
        assert any(each.points_to for each in (await stored.prepare()).view.shown)
        await stored.append(*tail())
        second = await stored.compress(strategy="native", keep_tokens=3_000)
        assert second.messages
        shown = (await stored.prepare(auto_compress=False)).view
        assert not dangling(shown.messages)
        assert not any(each.points_to for each in shown.shown)
        assert "app_59 = compute" in str(shown.messages)
        more = Session()
        more.read("b.py", numbered(code("other", 60)))
        await stored.append(*more.messages, *tail())
        third = await stored.compress(strategy="lossless")
        for receipt in (first.receipt, second.receipt, third.receipt):
            assert receipt is not None
            assert receipt.total.lost == 0
        shown = (await stored.prepare(auto_compress=False)).view
        ids = {each.id for each in shown.shown}
        assert any(each.points_to for each in shown.shown)
        assert all(id in ids for each in shown.shown for id in each.points_to)
        assert not dangling(shown.messages)


async def test_content_that_was_escaped_in_a_call_is_put_back_too() -> None:
    """The arguments of a call are JSON text on this wire, so that its lines are escaped there."""
    session = Session().act("write", {"path": "a.py", "content": "\n".join(APP)}, "written")
    session.messages += tail() * 3
    session.read("a.py", "\n".join(APP))
    once = await enfold.condense(
        wire.render(Conversation(tuple(session.end())), "openai"), "lossless"
    )
    assert f"⟨ {len(APP)} lines from" in json.dumps(once.messages, ensure_ascii=False)
    more = [*once.messages, *wire.render(Conversation(tuple(tail())), "openai")]
    writer = ScriptedSummarizer("In short.")
    twice = await enfold.condense(more, "native", config={"keepLast": 10}, summarizer=writer)
    results = [m["content"] for m in twice.messages if m["role"] == "tool"]
    assert results[-1] == "\n".join(APP)


async def test_no_encoding_makes_a_marker_of_escaped_words() -> None:
    fake = json.dumps({"output": "⟨ lines 1-20 as in read a.py ⟩", "more": ["x"] * 30})
    session = Session().read("a.py", numbered(APP)).run("cat log", fake)
    once = await enfold.condense(
        wire.render(Conversation(tuple(session.end())), "openai"), "lossless"
    )
    assert fake in [message["content"] for message in once.messages]
