"""Real processes that compress the same branch at once produce one snapshot."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import enfold
from enfold.testing import ScriptedSummarizer
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


async def test_rivals_make_one_summary_and_all_send_it(url: str) -> None:
    async with enfold.open(url) as engine:
        await engine.models.edit(MODEL, max_input=WINDOW, max_output=20_000, retention_tokens=300)
        await engine.set("summarizer", "scripted")
        await talk(await engine.session("contested", model=MODEL), 40)
    lines = [line.split(" ", 1) for line in contest(url)]
    assert sum(int(calls) for calls, _ in lines) == 1
    assert len({summary for _, summary in lines}) == 1
    async with enfold.open(url) as engine:
        (snapshot,) = await (await engine.find("contested")).summaries()
    assert snapshot.text == lines[0][1]


async def test_a_view_follows_the_changes_of_another_process(url: str) -> None:
    """An engine keeps its last view; every change by another engine shows in the next one."""
    summarizers = {"scripted": ScriptedSummarizer("They agreed on the plan.")}
    async with (
        enfold.open(url, summarizers=summarizers) as engine,
        enfold.open(url, summarizers=summarizers) as other_engine,
    ):
        await engine.models.edit(MODEL, max_input=WINDOW, max_output=20_000, retention_tokens=300)
        await engine.set("summarizer", "scripted")
        session = await engine.session("shared", model=MODEL)
        await talk(session, 10)
        other = await other_engine.find("shared")
        views: list[tuple[str, ...]] = []

        async def prepare() -> None:
            view = (await session.prepare()).view
            async with enfold.open(url, summarizers=summarizers) as fresh:
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
