"""Invariants of every history: compressed, undone, branched and compressed again."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

import enfold
from enfold import wire as dialects
from enfold.engine import Engine, Session
from enfold.history import is_from_user, orphans
from enfold.messages import Conversation, Message
from enfold.testing import ScriptedSummarizer
from enfold.tokens import count_conversation
from enfold.view import View
from tests.histories import histories

MODEL = "test:tiny"
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), histories(max_turns=3)),
        st.tuples(st.just("compress"), st.integers(0, 120)),
        st.tuples(st.just("undo"), st.none()),
        st.tuples(st.just("go back"), st.floats(0, 1)),
    ),
    min_size=2,
    max_size=7,
)


async def take(session: Session, step: tuple[str, object]) -> None:
    kind, value = step
    if kind == "say":
        assert isinstance(value, list)
        await session.append(*value)
    elif kind == "compress":
        assert isinstance(value, int)
        await session.compress(keep_tokens=value)
    elif kind == "undo":
        await session.undo()
    else:
        assert isinstance(value, float)
        history = await session.history(limit=1_000)
        if history:
            await session.switch(history[int(value * (len(history) - 1))].id)


def check(view: View, messages: Sequence[Message], depths: dict[str, int]) -> None:
    """The view is one that a model may be sent, and nothing of the branch is unaccounted for."""
    shown = view.messages
    assert len(orphans(shown)) <= len(orphans(messages))
    spoken = [message for message in messages if is_from_user(message)]
    if spoken:
        assert spoken[-1] in shown
    places = [depths[each.id] for each in view.shown]
    assert places == sorted(set(places))
    if view.summary is None:
        assert list(shown) == list(messages)
    # A summary stands for messages up to its cutoff; all after it are shown.
    cutoff = depths[view.cutoff] if view.cutoff is not None else 0
    assert places[view.covered :] == list(range(cutoff + 1, len(messages) + 1))
    sent = Conversation(view.messages_for("enfold"))
    assert view.tokens == count_conversation(sent).total
    for dialect in ("openai", "anthropic", "gemini"):
        wire = dialects.render(Conversation(view.messages_for(dialect), dialect), dialect)
        assert dialects.parse(wire, dialect).messages or not shown
    assert len(depths) == len(messages)


@given(STEPS)
@settings(max_examples=25)
async def test_the_view_is_always_valid_and_the_history_whole(
    steps: list[tuple[str, object]],
) -> None:
    summarizers = {"scripted": ScriptedSummarizer("s")}
    async with enfold.open("sqlite:///:memory:", summarizers=summarizers) as engine:
        session = await _session(engine)
        for step in steps:
            await take(session, step)
            prepared = await session.prepare(auto_compress=False)
            messages = await session.messages()
            rows = await session.history(limit=10_000)
            check(prepared.view, messages, {row.id: row.depth for row in rows})


async def _session(engine: Engine) -> Session:
    await engine.models.edit(MODEL, max_input=100_000, max_output=4_000)
    await engine.set("summarizer", "scripted")
    return await engine.session("chat", model=MODEL)
