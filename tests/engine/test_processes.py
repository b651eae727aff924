"""Real processes that compress the same branch at once produce one snapshot."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from functools import partial

import enfold
from enfold.engine import Engine, Session
from enfold.engine.state import message_of, read_state
from enfold.testing import ScriptedSummarizer, assistant, user
from tests.conftest import ROOT
from tests.engine.conftest import MODEL, WINDOW, talk

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
RIVALS = 3


def contest(url: str) -> list[str]:
    """Return the last line of each rival."""
    rivals = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.engine.rivals", url, f"rival {number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        for number in range(RIVALS)
    ]
    try:
        for rival in rivals:
            assert rival.stdout is not None
            assert rival.stdout.readline() == "ready\n"
        for rival in rivals:
            assert rival.stdin is not None
            rival.stdin.write("\n")
            rival.stdin.flush()
        return [rival.communicate(timeout=60)[0].strip() for rival in rivals]
    finally:
        for rival in rivals:
            rival.kill()
            rival.communicate()


async def begin(engine: Engine, name: str, messages: int) -> Session:
    """Start a session with a small window, whose summaries are scripted."""
    await engine.models.edit(MODEL, max_input=WINDOW, max_output=20_000, retention_tokens=300)
    await engine.set("summarizer", "scripted")
    session = await engine.session(name, model=MODEL)
    await talk(session, messages)
    return session


def open_scripted(url: str) -> AbstractAsyncContextManager[Engine]:
    summarizers = {"scripted": ScriptedSummarizer("They agreed on the plan.")}
    return enfold.open(url, summarizers=summarizers)


async def test_rivals_make_one_summary_and_all_send_it(url: str) -> None:
    async with enfold.open(url) as engine:
        await begin(engine, "contested", 40)
    lines = [line.split(" ", 1) for line in contest(url)]
    assert sum(int(calls) for calls, _ in lines) == 1
    assert len({summary for _, summary in lines}) == 1
    async with enfold.open(url) as engine:
        (snapshot,) = await (await engine.find("contested")).summaries()
    assert snapshot.text == lines[0][1]


async def test_a_view_follows_the_changes_of_another_process(url: str) -> None:
    """An engine keeps its last view; every change by another engine shows in the next one."""
    async with open_scripted(url) as engine, open_scripted(url) as other_engine:
        session = await begin(engine, "shared", 10)
        other = await other_engine.find("shared")
        views: list[tuple[str, ...]] = []

        async def prepare() -> None:
            view = (await session.prepare()).view
            async with open_scripted(url) as fresh:
                expected = (await (await fresh.find("shared")).prepare()).view
            assert view == expected
            views.append(tuple(shown.id for shown in view.shown))

        await prepare()
        for change in (
            partial(talk, other, 1, start=10),
            other.compress,
            partial(talk, other, 1, start=11),
            partial(other.edit_summary, "They agreed on another plan."),
            other.step_back,
            partial(other.append, "Another answer, please."),
            partial(other.update, model="test:other"),
            other.undo,
            partial(other.switch, None),
        ):
            await change()
            await prepare()
        assert len(set(views)) == len(views) - 2  # the edited summary and the model change no id
        await other.delete()
        recreated = await other_engine.session("shared", model=MODEL)
        await talk(recreated, 2, start=5)
        session = await engine.find("shared")
        await prepare()


async def test_a_turn_does_not_read_again_what_nobody_changed(url: str) -> None:
    """After an append the state is known, and it is the one that another engine reads."""
    async with open_scripted(url) as engine, open_scripted(url) as other_engine:
        session = await begin(engine, "shared", 10)
        await session.compress()
        other = await other_engine.find("shared")
        turns = iter(range(10, 100))

        async def turn() -> bool:
            """Take a turn; return True if the state after the append was known."""
            before = engine.recent_views.state_of(session.key)
            await talk(session, 1, start=next(turns))
            after = engine.recent_views.state_of(session.key)
            is_known = after is not None and after.is_of(engine.store.version(), {}, None)
            prepared = await session.prepare()
            assert prepared == await other.prepare()
            if is_known:
                assert after is not before
                assert after is not None
                assert after.state == await engine.store.read(
                    read_state, session.key, {}, engine.static_settings
                )
            return is_known

        await turn()
        await turn()
        assert await turn() is (engine.store.engine == "sqlite")
        for change in (
            partial(other.append, "A word in between."),
            partial(other.configure, keep_first=1),
            partial(session.step_back),
            partial(other_engine.set, "threshold", 0.5),
            session.compress,
            partial(session.append, user("Again"), assistant("Yes"), forward_only=True),
        ):
            await change()
            assert not await turn()
            await turn()
        assert await turn() is (engine.store.engine == "sqlite")


async def test_messages_that_come_back_are_read(url: str) -> None:
    """A branch that was left may have a summary; an append that goes back to it shows that."""
    async with open_scripted(url) as engine:
        session = await begin(engine, "shared", 10)
        rows = await session.history()
        await session.compress()
        await session.switch(rows[3].id)
        for _ in range(2):
            await session.append("Another question.")
            await session.step_back()
            assert (await session.prepare()).view.summary is None
        found = await session.append(*map(message_of, rows[4:]))
        assert found == tuple(row.id for row in rows[4:])
        assert (await session.prepare()).view.summary is not None
