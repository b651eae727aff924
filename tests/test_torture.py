"""The short form of `make torture`: a few kills of each kind on SQLite."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from tests.torture import Kills, cut_log, refuse_writes, set_clock_back, torture


def test_killed_processes_lose_nothing(tmp_path: Path) -> None:
    # tests/store/test_processes.py kills users of the library.
    report = torture(f"sqlite:///{tmp_path / 'store.db'}", Kills(0, 2, 2), tmp_path, seed=3)
    assert "nothing is missing" in report


def test_a_cut_log_a_full_disk_and_a_clock_that_was_set_back(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(cut_log(path, 5, random.Random(1)))
    asyncio.run(refuse_writes(path))
    asyncio.run(set_clock_back(path))
