"""Real processes: some write at once, some are killed while they write."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest
from tests.conftest import ROOT
from tests.store.rivals import APPENDS
from tests.store.samples import texts, verify

from enfold.records import SessionRecord
from enfold.store import Store, open_store, sessions, snapshots, tree

ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
RIVALS = 3


@pytest.fixture
def contest(url: str) -> list[str]:
    """Return the last line of each rival."""
    rivals = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.store.rivals", url, f"rival {number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
        )
        for number in range(RIVALS)
    ]
    try:
        for expected in ("ready\n", "compressing\n", "working\n"):
            for rival in rivals:
                assert rival.stdout is not None
                assert rival.stdout.readline() == expected
            for rival in rivals:
                assert rival.stdin is not None
                rival.stdin.write("\n")
                rival.stdin.flush()
        return [rival.communicate(timeout=60)[0].strip() for rival in rivals]
    finally:
        for rival in rivals:
            rival.kill()
            rival.communicate()


async def test_rivals_write_one_line_and_one_snapshot(url: str, contest: list[str]) -> None:
    assert Counter(contest) == {"recorded": 1, "too late": RIVALS - 1}
    async with await open_store(url) as store:
        session = await _session(store, "contested")
        (snapshot,) = await store.read(snapshots.of_kind, session.key)
        assert (snapshot.text or "").startswith("by rival")
        line = await store.read(tree.path, session.key)
        expected = [f"rival {n} says {m}" for n in range(RIVALS) for m in range(APPENDS)]
        assert sorted(texts(line)) == sorted(expected)
        assert len(await store.read(tree.branches, session.key)) == 1
        assert await store.read(verify, session.key) == RIVALS * APPENDS


def test_a_killed_process_loses_nothing_confirmed(url: str) -> None:
    """Two hundred times on SQLite, where the dead process is the database itself."""
    rounds = 200 if url.startswith("sqlite") else 25
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.hammer", url, str(rounds), "7"],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    messages, made, confirmed = map(int, done.stdout.split())
    assert messages > rounds
    assert made > rounds / 2
    assert confirmed > rounds


async def _session(store: Store, id: str) -> SessionRecord:
    session = await store.read(sessions.find, "ours", id)
    assert session is not None
    return session
