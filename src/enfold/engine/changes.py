"""Receipts of stored compressions, computed again from the store.

A snapshot keeps only the warnings and what its summary invented. The items are in the messages, and
those are all still there: what the view showed before the compression, and what it showed after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Literal, TypeAlias

from enfold import records
from enfold.condensation import removed_parts
from enfold.engine.state import SettingsLevel, message_of, read_session_settings
from enfold.messages import Message, Text
from enfold.receipt import Receipt, RestorableBy, make_receipt
from enfold.records import Edit, SessionKey, StoredMessage
from enfold.store import snapshots, tree
from enfold.store.database import Database


@dataclass(frozen=True, slots=True)
class ViewChange:
    """The messages that a compression removed from the view, and the view after it."""

    gone: tuple[Message, ...]
    view: tuple[Message, ...]
    restorable_by: RestorableBy = "store"
    """All that is stored can be had again, and this is how it was when it left the view."""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """The part of the receipt that was recorded with the snapshot."""

    def receipt(self) -> Receipt:
        """Return the receipt of the removed messages."""
        made = make_receipt(self.gone, self.view, restorable=True, by=self.restorable_by)
        invented = tuple(
            (each["class"], each["item"]) for each in self.recorded.get("invented", ())
        )
        warnings = tuple(self.recorded.get("warnings", ()))
        return replace(made, invented=invented, warnings=warnings)


def read_change(db: Database, key: SessionKey, id: str) -> ViewChange:
    """Return the change that a snapshot made, undone since or not."""
    snapshot = snapshots.get(db, key, id)
    originals = {row.id: message_of(row) for row in tree.path(db, key, snapshot.tip)}
    base = base_of(db, key, snapshot)
    before = shown_by(db, key, base, originals)
    after = shown_by(db, key, snapshot, originals)
    gone = [*_summary(base)] if base is None or base.text != snapshot.text else []
    for name, shown in before.items():
        if name not in after:
            gone.append(originals[name])
        elif after[name] != shown:
            gone.append(removed_parts(originals[name], after[name]))
    recorded = snapshot.content.get("receipt") or {}
    means: RestorableBy = "recall" if recorded.get("restorable_by") == "recall" else "store"
    return ViewChange(tuple(gone), (*_summary(snapshot), *after.values()), means, recorded)


def base_of(db: Database, key: SessionKey, snapshot: records.Snapshot) -> records.Snapshot | None:
    """The snapshot whose view was compressed; one that only changed the text is passed over."""
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
    originals: Mapping[str, Message],
) -> dict[str, Message]:
    """The messages that a snapshot's view shows, as it shows them, by id."""
    if snapshot is None:
        return dict(originals)
    places = {name: place for place, name in enumerate(originals)}
    names = list(originals)
    ids = [entry.edit for entry in snapshot.manifest if isinstance(entry, records.EditReference)]
    edits = snapshots.edits_by_id(db, key, ids) if ids else {}
    shown: dict[str, Message] = {}
    for entry in snapshot.manifest:
        if isinstance(entry, records.EditReference):
            edit = edits[entry.edit]
            shown[edit.message] = message_of(edit)
        elif isinstance(entry, records.KeptRange):
            kept = names[places[entry.first] : places[entry.last] + 1]
            shown.update((name, originals[name]) for name in kept)
    cutoff = places[snapshot.cutoff] + 1 if snapshot.cutoff is not None else 0
    shown.update((name, originals[name]) for name in names[cutoff:])
    return shown


def _summary(snapshot: records.Snapshot | None) -> Iterator[Message]:
    if snapshot is not None and snapshot.text is not None:
        yield Message("system", (Text(snapshot.text),))


MessageChange: TypeAlias = Literal["kept", "edited", "summarized", "shown"]
"""The change of a message: unchanged, edited, summarized, or in view again."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One message, as the view showed it before and as it shows it after."""

    id: str
    depth: int
    """Its place on its branch; the first is 1."""
    original: Message
    """The message as it was stored."""
    before: Message | None
    """None where the view did not show it."""
    after: Message | None

    @property
    def change(self) -> MessageChange:
        """The change of the message."""
        if self.before is None:
            return "shown"
        if self.after is None:
            return "summarized"
        return "kept" if self.before == self.after else "edited"


@dataclass(frozen=True, slots=True)
class MessageRun:
    """Messages in a row with the same change."""

    change: MessageChange
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two views of the same branch."""

    snapshot: records.Snapshot
    summary_before: str | None
    stretches: tuple[MessageRun, ...]
    earlier: int
    """Number of messages that neither of them shows: they were summarized before."""

    @property
    def summary_after(self) -> str | None:
        """The summary that the view shows after it."""
        return self.snapshot.text

    @property
    def is_summary_new(self) -> bool:
        """True if there is a summary, and it was not there before."""
        return self.summary_after is not None and self.summary_after != self.summary_before

    def number(self, change: MessageChange) -> int:
        """Return the number of messages with that change."""
        return sum(len(stretch.pairs) for stretch in self.stretches if stretch.change == change)


def read_comparison(db: Database, key: SessionKey, id: str) -> Comparison:
    """The view before and after the compression of that snapshot, undone since or not."""
    snapshot = snapshots.get(db, key, id)
    rows = tree.path(db, key, snapshot.tip)
    originals = {row.id: message_of(row) for row in rows}
    base = base_of(db, key, snapshot)
    before, after = shown_by(db, key, base, originals), shown_by(db, key, snapshot, originals)
    pairs = tuple(
        Pair(row.id, row.depth, originals[row.id], before.get(row.id), after.get(row.id))
        for row in rows
        if row.id in before or row.id in after
    )
    grouped = groupby(pairs, key=lambda pair: pair.change)
    return Comparison(
        snapshot,
        base.text if base is not None else None,
        tuple(MessageRun(change, tuple(found)) for change, found in grouped),
        earlier=len(rows) - len(pairs),
    )


MessageState: TypeAlias = Literal["shown", "shortened", "summarized"]


@dataclass(frozen=True, slots=True)
class MessagePlaces:
    """The states of a branch's messages, by their place on it; the first is 1."""

    snapshot: str | None = None
    """The id of the compression that applies. None if none does: everything is shown."""
    cutoff: int = 0
    """The place of the last message that it covers."""
    shown: frozenset[int] = frozenset()
    """The messages up to the cutoff that are shown unchanged."""
    shortened: frozenset[int] = frozenset()

    def state(self, depth: int) -> MessageState:
        """Return the state of the message at a place."""
        if depth in self.shortened:
            return "shortened"
        return "shown" if depth > self.cutoff or depth in self.shown else "summarized"


def read_message_places(
    db: Database, key: SessionKey, static_settings: Sequence[SettingsLevel], tip: str | None = None
) -> MessagePlaces:
    """Return the states of the messages of the branch that ends at `tip`, or of the current branch.

    The cost follows the size of the view, not that of the history.
    """
    shared = read_session_settings(db, key, static_settings).share_across_branches
    snapshot = snapshots.applicable(db, key, tip, share_across_branches=shared)
    if snapshot is None:
        return MessagePlaces()
    entries = snapshots.entries(db, snapshot)
    return MessagePlaces(
        snapshot.id,
        snapshot.cutoff_depth or 0,
        frozenset(row.depth for row in entries if isinstance(row, StoredMessage)),
        frozenset(row.depth for row in entries if isinstance(row, Edit)),
    )
