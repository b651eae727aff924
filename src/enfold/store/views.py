"""What a view is made of: the applicable snapshot's entries and the messages after its cutoff.

Read at one moment, at a cost that follows the size of the view and not that of the history.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from enfold.errors import IntegrityError
from enfold.store import nodes, sessions, snapshots, tree
from enfold.store.database import Database
from enfold.store.records import (
    Edited,
    Kept,
    ManifestEntry,
    SessionKey,
    Shown,
    Snapshot,
    Summarized,
    ViewRows,
)


def view(
    db: Database,
    session: SessionKey,
    tip: str | None = None,
    *,
    share_across_branches: bool = False,
    without: Collection[str] = (),
) -> ViewRows:
    """The rows of the view of the branch that ends at `tip`, or of the current branch.

    `without` names snapshots to leave out of account.
    """
    bottom = nodes.tip(db, session, tip)
    snapshot = snapshots.applicable_at(
        db, session, bottom, share_across_branches=share_across_branches, without=without
    )
    cutoff_depth = (snapshot.cutoff_depth or 0) if snapshot else 0
    return ViewRows(
        session=sessions.get(db, session),
        tip=bottom.id,
        depth=bottom.depth,
        snapshot=snapshot,
        shown=tuple(entries(db, snapshot)) if snapshot else (),
        after=tree.line(db, bottom.key, cutoff_depth) if bottom.depth > cutoff_depth else (),
    )


def entries(db: Database, snapshot: Snapshot) -> list[Shown]:
    """The manifest with messages and edits in place of their ids, in two queries."""
    manifest = snapshot.manifest
    wanted = [entry.edit for entry in manifest if isinstance(entry, Edited)]
    ends = [(entry.first, entry.last) for entry in manifest if isinstance(entry, Kept)]
    edits = snapshots.edits(db, snapshot.session, wanted) if wanted else {}
    stretches = iter(tree.segments(db, snapshot.session, ends) if ends else ())
    shown: list[Shown] = []
    for entry in manifest:
        match entry:
            case Kept():
                shown.extend(_there(next(stretches), snapshot, entry))
            case Edited(edit):
                shown.extend(_there([edits[edit]] if edit in edits else [], snapshot, entry))
            case Summarized():
                shown.append(entry)
    return shown


def _there(found: Sequence[Shown], snapshot: Snapshot, entry: ManifestEntry) -> Sequence[Shown]:
    if found:
        return found
    raise IntegrityError(f"snapshot {snapshot.id} shows {entry}, which is not in the session")
