"""How many files of the package one request runs through, counted while it runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import enfold
from enfold.testing import assistant, user
from tests.source import PACKAGE

MODEL = "test:small"
KEPT = 20
"""The most files that `prepare` may cross if nothing is compressed."""
COMPRESSING = 55
"""The most files that `prepare` may cross if it compresses."""


@contextmanager
def crossed_files() -> Iterator[set[str]]:
    """Collect the files of the package whose functions run inside the block.

    Threads that were started before the block are not observed: open engines inside it, and
    clear the set before the call that is measured.
    """
    root, background = str(PACKAGE), str(PACKAGE / "queue")
    files: set[str] = set()

    def observe(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        # The queue works in the background whenever it has time, not for this request.
        if code.co_filename.startswith(background):
            return
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(root):
            files.add(str(Path(code.co_filename).relative_to(root)))

    threading.setprofile(observe)
    sys.setprofile(observe)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def test_a_prepared_turn_crosses_few_files(tmp_path: Path) -> None:
    with crossed_files() as files:
        async with enfold.open(f"sqlite:///{tmp_path / 'chats.db'}") as engine:
            await engine.models.edit(MODEL, max_input=4_000, max_output=20_000)
            session = await engine.session("chat", model=MODEL)
            await session.append(user("Where is the log?"), assistant("In /var/log/app.log."))
            await session.prepare("And the code?")
            files.clear()
            prepared = await session.prepare("And the error code?")
            kept = sorted(files)
            assert prepared.compression is None
            for turn in range(20):
                await session.append(
                    user(f"Question {turn}: " + "why did the deployment fail? " * 20),
                    assistant(
                        f"Answer {turn}: " + f"see /var/log/app-{turn}.log for E-40{turn}. " * 9
                    ),
                )
            files.clear()
            prepared = await session.prepare("And now?")
            compressing = sorted(files)
            assert prepared.compression is not None
            assert prepared.compression.compressed
    assert len(kept) <= KEPT, "\n".join(kept)
    assert len(compressing) <= COMPRESSING, "\n".join(compressing)
