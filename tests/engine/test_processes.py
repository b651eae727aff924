"""Real processes that compress the same branch at once produce one snapshot."""

from __future__ import annotations

import os
import subprocess
import sys

import enfold
from tests.conftest import ROOT
from tests.engine.conftest import MODEL, WINDOW, talk

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
RIVALS = 3


def contest(url: str) -> list[str]:
    """What each rival said in the end."""
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
