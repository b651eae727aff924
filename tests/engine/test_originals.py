"""Originals of edited messages: summarizers read them, and they return when an edit ends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import enfold
from enfold.engine import Session
from enfold.history import last_user_message, orphans
from enfold.messages import Message
from enfold.testing import ScriptedSummarizer, assistant, call, result, user
from enfold.tokens import count_messages
from enfold.view import View
from tests.engine.conftest import Bench, talk
from tests.engine.test_edited_sessions import OUTPUT, outputs, work
from tests.strategies.conversations import conversations


async def read_again(session: Session, rounds: int) -> None:
    """Read the same file a number of times."""
    for number in range(rounds):
        name = f"again-{number}"
        await session.append(
            user(f"Look again, {number}."),
            assistant("", call(name, "read", {"path": "same.py"})),
            result(name, OUTPUT),
            assistant(f"Seen {number}."),
        )
    await session.append(user("And now?"))


def pointing(view: View) -> list[str]:
    return [shown.id for shown in view.shown if shown.points_to]


async def test_truncated_messages_are_summarized_from_their_originals(bench: Bench) -> None:
    session = await bench.session()
    await work(session, 6)
    await session.compress(strategy="truncation")
    await session.compress(keep_tokens=200)
    (request,) = bench.summarizer.requests
    assert outputs(request.messages)[0] == f"file 0\n{OUTPUT}"
    assert not any("truncated" in text for text in outputs(request.messages))


async def test_markers_name_what_they_point_to(bench: Bench) -> None:
    session = await bench.session()
    await read_again(session, 6)
    await session.compress(strategy="lossless")
    view = (await session.prepare()).view
    assert len(pointing(view)) == 5
    (source,) = {id for shown in view.shown for id in shown.points_to}
    assert outputs((next(s.message for s in view.shown if s.id == source),)) == [OUTPUT]


async def test_a_compression_shows_messages_again_that_were_referred_to_by_number(
    bench: Bench,
) -> None:
    session = await bench.session()
    await talk(session, 20)
    await read_again(session, 3)
    await session.compress(strategy="lossless")
    before = (await session.prepare()).view
    assert len(pointing(before)) == 2
    done = await session.compress(keep_tokens=700)
    view = (await session.prepare()).view
    assert view.summary is not None
    assert pointing(view) == []
    kept = outputs(view.messages)
    assert kept
    assert set(kept) == {OUTPUT}
    assert done.tokens_after == view.tokens < before.tokens
    await session.undo()
    assert (await session.prepare()).view.shown == before.shown


async def test_edits_elsewhere_leave_pointers_as_they_are(bench: Bench) -> None:
    session = await bench.session()
    await read_again(session, 3)
    await session.compress(strategy="lossless")
    before = (await session.prepare()).view
    written = call("w", "write", {"path": "b.py", "content": "word " * 500})
    await session.append(assistant("", written), result("w", "ok"), assistant("Done."))
    await session.append(user("Good."))
    config = {"truncation": {"toolResultMode": "keep", "preserveRecentCount": 1}}
    done = await session.compress(strategy="truncation", strategy_config=config)
    view = (await session.prepare()).view
    assert done.edited == 1
    assert pointing(view) == pointing(before)
    assert done.tokens_after == view.tokens


async def test_an_edit_of_what_is_pointed_to_shows_the_others_again(bench: Bench) -> None:
    session = await bench.session()
    await read_again(session, 2)
    written = call("w", "write", {"path": "b.py", "content": "word " * 900})
    await session.append(assistant("", written), result("w", "ok"), assistant("Done."))
    await session.append(user("Good."))
    await session.compress(strategy="lossless")
    before = (await session.prepare()).view
    (name,) = pointing(before)
    config = {"truncation": {"maxToolResultLines": 50, "preserveRecentCount": 1}}
    done = await session.compress(strategy="truncation", strategy_config=config)
    view = (await session.prepare()).view
    now = {shown.id: shown for shown in view.shown}
    assert done.compressed
    assert pointing(view) == []
    assert "truncated" in outputs((now[name].message,))[0]
    assert done.tokens_after == view.tokens < before.tokens


async def test_the_same_again_is_no_gain(bench: Bench) -> None:
    session = await bench.session()
    await read_again(session, 4)
    await session.compress(strategy="lossless")
    before = (await session.prepare()).view
    again = await session.compress(strategy="lossless")
    assert not again.compressed
    assert again.tokens_after == before.tokens
    assert (await session.prepare()).view.shown == before.shown


CONFIGS = {
    "truncation": {"preserveRecentCount": 1, "maxToolResultLines": 2, "maxToolParamChars": 20},
    "lossless": {},
    "native": {},
    "smart": {},
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), conversations(max_turns=2)),
        st.tuples(st.just("say"), conversations(max_turns=2)),
        st.tuples(st.just("compress"), st.sampled_from(tuple(CONFIGS))),
        st.tuples(st.just("undo"), st.none()),
    ),
    min_size=3,
    max_size=8,
)


def check(view: View, messages: tuple[Message, ...]) -> None:
    """The view is one that may be sent, and it says of what it shows otherwise that it does."""
    assert len(orphans(view.messages)) <= len(orphans(messages))
    depths = [shown.depth for shown in view.shown]
    assert depths == sorted(set(depths))
    for shown in view.shown:
        assert shown.edit is not None or shown.message == messages[shown.depth - 1]
    assert [shown.tokens for shown in view.shown] == count_messages(view.messages)
    last = last_user_message(messages)
    assert last is None or messages[last] in view.messages
    if view.summary is None:
        assert len(view.shown) == len(messages)
    by_id = {shown.id for shown in view.shown}
    assert all(id in by_id for shown in view.shown for id in shown.points_to)


@given(STEPS)
@settings(max_examples=25)
async def test_however_strategies_follow_each_other_the_view_is_valid(
    steps: list[tuple[str, object]],
) -> None:
    summarizers = {"scripted": ScriptedSummarizer("s")}
    async with enfold.open("sqlite:///:memory:", summarizers=summarizers) as engine:
        await engine.models.edit("test:tiny", max_input=100_000, max_output=4_000)
        await engine.set("summarizer", "scripted")
        session = await engine.session("chat", model="test:tiny")
        for kind, value in steps:
            if kind == "say":
                assert isinstance(value, tuple)
                await session.append(*value)
            elif kind == "undo":
                await session.undo()
            else:
                before = (await session.prepare(auto_compress=False)).view
                done = await session.compress(
                    keep_tokens=60, strategy=value, strategy_config=CONFIGS
                )
                after = (await session.prepare(auto_compress=False)).view
                assert after.tokens == (done.tokens_after if done.compressed else before.tokens)
            view = (await session.prepare(auto_compress=False)).view
            check(view, await session.messages())
