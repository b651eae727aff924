"""Placing: which messages of a branch the view shows, which are shortened, which are folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from enfold.engine.state import Level, read_session_settings
from enfold.store import snapshots, views
from enfold.store.database import Database
from enfold.store.records import Edit, SessionKey, StoredMessage

Standing: TypeAlias = Literal["shown", "shortened", "folded"]


@dataclass(frozen=True, slots=True)
class Placing:
    """How the messages of a branch stand, by their place on it; the first is 1."""

    snapshot: str | None = None
    """The id of the compression that applies. None if none does: everything is shown."""
    cutoff: int = 0
    """The place of the last message that it covers."""
    shown: frozenset[int] = frozenset()
    """Of those up to the cutoff, the ones shown as they were said."""
    shortened: frozenset[int] = frozenset()

    def standing(self, depth: int) -> Standing:
        """How the message at a place stands."""
        if depth in self.shortened:
            return "shortened"
        return "shown" if depth > self.cutoff or depth in self.shown else "folded"


def read_placing(
    db: Database, key: SessionKey, outside: Sequence[Level], tip: str | None = None
) -> Placing:
    """How the messages of the branch that ends at `tip` stand, or of the current branch.

    The cost follows the size of the view, not that of the history.
    """
    shared = read_session_settings(db, key, outside).share_across_branches
    snapshot = snapshots.applicable(db, key, tip, share_across_branches=shared)
    if snapshot is None:
        return Placing()
    entries = views.entries(db, snapshot)
    return Placing(
        snapshot.id,
        snapshot.cutoff_depth or 0,
        frozenset(row.depth for row in entries if isinstance(row, StoredMessage)),
        frozenset(row.depth for row in entries if isinstance(row, Edit)),
    )
