"""Comparison: what the view showed before a compression, and what it shows after it.

Everything that was said is still in the store, so both can be had at any time: for a compression
that is in use, for one that was undone, and for one that others have followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

from enfold.engine.receipts import base_of, shown_by
from enfold.engine.viewing import message_of
from enfold.messages import Message
from enfold.store import records, snapshots, tree
from enfold.store.database import Database
from enfold.store.records import SessionKey

Fate: TypeAlias = Literal["kept", "edited", "folded", "shown"]
"""What became of a message: as it was, with other content, no longer there, or there again."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One message, as the view showed it before and as it shows it after."""

    id: str
    depth: int
    """Its place on its branch; the first is 1."""
    said: Message
    """As it was said."""
    before: Message | None
    """None where the view did not show it."""
    after: Message | None

    @property
    def fate(self) -> Fate:
        """What became of it."""
        if self.before is None:
            return "shown"
        if self.after is None:
            return "folded"
        return "kept" if self.before == self.after else "edited"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages in a row with the same fate."""

    fate: Fate
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two views of the same branch."""

    snapshot: records.Snapshot
    summary_before: str | None
    stretches: tuple[Stretch, ...]
    earlier: int
    """How many messages neither of them shows: they were folded before."""

    @property
    def summary_after(self) -> str | None:
        """The summary that the view shows after it."""
        return self.snapshot.text

    @property
    def is_summary_new(self) -> bool:
        """True if there is a summary, and it was not there before."""
        return self.summary_after is not None and self.summary_after != self.summary_before

    def number(self, fate: Fate) -> int:
        """How many messages have that fate."""
        return sum(len(stretch.pairs) for stretch in self.stretches if stretch.fate == fate)


def read_comparison(db: Database, key: SessionKey, id: str) -> Comparison:
    """The view before and after the compression of that snapshot, undone since or not."""
    snapshot = snapshots.get(db, key, id)
    rows = tree.path(db, key, snapshot.parent)
    said = {row.id: message_of(row) for row in rows}
    base = base_of(db, key, snapshot)
    before, after = shown_by(db, key, base, said), shown_by(db, key, snapshot, said)
    pairs = tuple(_pairs(rows, said, before, after))
    grouped = groupby(pairs, key=lambda pair: pair.fate)
    return Comparison(
        snapshot,
        base.text if base is not None else None,
        tuple(Stretch(fate, tuple(found)) for fate, found in grouped),
        earlier=len(rows) - len(pairs),
    )


def _pairs(
    rows: tuple[records.StoredMessage, ...],
    said: Mapping[str, Message],
    before: Mapping[str, Message],
    after: Mapping[str, Message],
) -> Iterator[Pair]:
    for row in rows:
        if row.id in before or row.id in after:
            yield Pair(row.id, row.depth, said[row.id], before.get(row.id), after.get(row.id))
