"""Receipts of stored compressions, made out anew from what the store has.

A snapshot keeps only the figures. The items are in the messages, and those are all still there:
what the view showed before the compression, and what it showed after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from enfold.acceptance import taken_out
from enfold.engine.viewing import message_of
from enfold.messages import Message, Text
from enfold.receipt import Means, Receipt, receipt
from enfold.store import records, snapshots, tree
from enfold.store.database import Database
from enfold.store.records import SessionKey


@dataclass(frozen=True, slots=True)
class Change:
    """What a compression took out of the view, and what the view was then."""

    gone: tuple[Message, ...]
    view: tuple[Message, ...]
    restorable_by: Means = "store"
    """All that is stored can be had again, and this is how it was when it left the view."""

    def receipt(self) -> Receipt:
        """What became of the items."""
        return receipt(self.gone, self.view, restorable=True, by=self.restorable_by)


def read_change(db: Database, key: SessionKey, id: str) -> Change:
    """What the compression of that snapshot changed, undone since or not."""
    snapshot = snapshots.get(db, key, id)
    said = {row.id: message_of(row) for row in tree.path(db, key, snapshot.parent)}
    base = base_of(db, key, snapshot)
    before = shown_by(db, key, base, said)
    after = shown_by(db, key, snapshot, said)
    gone = [*_summary(base)] if base is None or base.text != snapshot.text else []
    for name, shown in before.items():
        if name not in after:
            gone.append(said[name])
        elif after[name] != shown:
            gone.append(taken_out(said[name], after[name]))
    recorded = snapshot.content.get("receipt") or {}
    means: Means = "recall" if recorded.get("restorable_by") == "recall" else "store"
    return Change(tuple(gone), (*_summary(snapshot), *after.values()), means)


def base_of(db: Database, key: SessionKey, snapshot: records.Snapshot) -> records.Snapshot | None:
    """The snapshot whose view was compressed; one that was only worded anew is passed over."""
    found = snapshot
    while found.previous is not None:
        found = snapshots.get(db, key, found.previous)
        if (found.cutoff, found.parent) != (snapshot.cutoff, snapshot.parent):
            return found
    return None


def shown_by(
    db: Database,
    key: SessionKey,
    snapshot: records.Snapshot | None,
    said: Mapping[str, Message],
) -> dict[str, Message]:
    """The messages that a snapshot's view shows, as it shows them, by id."""
    if snapshot is None:
        return dict(said)
    places = {name: place for place, name in enumerate(said)}
    names = list(said)
    ids = [entry.edit for entry in snapshot.manifest if isinstance(entry, records.Edited)]
    edits = snapshots.edits(db, key, ids) if ids else {}
    shown: dict[str, Message] = {}
    for entry in snapshot.manifest:
        if isinstance(entry, records.Edited):
            edit = edits[entry.edit]
            shown[edit.message] = message_of(edit)
        elif isinstance(entry, records.Kept):
            kept = names[places[entry.first] : places[entry.last] + 1]
            shown.update((name, said[name]) for name in kept)
    cutoff = places[snapshot.cutoff] + 1 if snapshot.cutoff is not None else 0
    shown.update((name, said[name]) for name in names[cutoff:])
    return shown


def _summary(snapshot: records.Snapshot | None) -> Iterator[Message]:
    if snapshot is not None and snapshot.text is not None:
        yield Message("system", (Text(snapshot.text),))
