"""One of several processes that write to the same session at once.

    python -m tests.store.rivals URL NAME

Says `ready`, waits for a line, appends; then says `compressing`, waits for a line, and tries to
record a snapshot of what it saw. It prints whether it was the first.
"""

from __future__ import annotations

import asyncio
import sys

from tests.store.samples import draft

from enfold.errors import ConflictError
from enfold.records import SnapshotDraft, SummaryPlace
from enfold.store import open_store, sessions, snapshots, tree
from enfold.store import snapshots as views

APPENDS = 15


async def main(url: str, name: str) -> None:
    """Append some messages, then compress."""
    async with await open_store(url) as store:
        session = await store.write(sessions.get_or_create, "ours", "contested")
        _wait("ready")
        for number in range(APPENDS):
            await store.write(tree.append, session.key, [draft(f"{name} says {number}")])
        _wait("compressing")
        view = await store.read(views.view, session.key)
        work = SnapshotDraft(
            {"summaryText": f"by {name}"},
            cutoff=view.after[-2].id,
            parent=view.tip,
            manifest=(SummaryPlace(),),
        )
        _wait("working")
        try:
            await store.write(snapshots.record, session.key, work, expected=None)
        except ConflictError:
            _say("too late")
        else:
            _say("recorded")


def _wait(what: str) -> None:
    _say(what)
    sys.stdin.readline()


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
