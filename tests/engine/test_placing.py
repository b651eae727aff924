"""Which messages of a branch are in the view."""

from __future__ import annotations

from enfold.engine import Session
from enfold.engine.changes import MessagePlaces, read_message_places
from enfold.testing import assistant, call, result, user
from tests.engine.conftest import Bench, talk


async def placing(bench: Bench, session: Session, tip: str | None = None) -> MessagePlaces:
    return await bench.engine.store.read(
        read_message_places, session.key, bench.engine.static_settings, tip
    )


async def test_without_a_compression_everything_is_shown(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 3)
    found = await placing(bench, session)
    assert found.snapshot is None
    assert {found.standing(depth) for depth in range(1, 7)} == {"shown"}


async def test_what_a_summary_stands_for_is_folded_and_the_rest_shown(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    done = await session.compress(keep_first=2)
    found = await placing(bench, session)
    standings = [found.standing(depth) for depth in range(1, 41)]
    assert found.snapshot == done.snapshot
    assert standings.count("folded") == done.messages
    assert standings[:2] == ["shown", "shown"]
    assert standings[2] == "folded"
    assert standings[-1] == "shown"


async def test_edited_messages_are_shortened(bench: Bench) -> None:
    session = await bench.session()
    for n in range(6):
        await session.append(
            user(f"Read it, {n}."),
            assistant("", call(f"c{n}", "read", {"path": f"a{n}.txt"})),
            result(f"c{n}", "\n".join(f"line {n} {i} of the file" for i in range(60))),
            assistant("Done."),
        )
    done = await session.compress(strategy="truncation", keep_tokens=100)
    found = await placing(bench, session)
    standings = [found.standing(depth) for depth in range(1, 25)]
    assert standings.count("shortened") == done.edited > 0
    assert "folded" not in standings


async def test_a_branch_that_the_compression_was_not_made_on_shows_everything(bench: Bench) -> None:
    session = await bench.session()
    await talk(session, 20)
    first = (await session.history(limit=40))[0]
    await session.compress()
    (other,) = await session.append(assistant("Another answer."), after=first.id)
    found = await placing(bench, session, other)
    assert found.snapshot is None
