"""The shelf: what of a session is shown in the chat, read in pages from its end.

It is what the model is sent: the messages after the snapshot in use, and before them what the
snapshot shows. A page is read at a cost that does not follow the length of the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from enfold.engine.state import SettingsLevel, read_session_settings
from enfold.records import Edit, SessionKey, SessionRecord, Snapshot, StoredMessage, SummaryPlace
from enfold.store import sessions, snapshots, tree
from enfold.store import snapshots as views
from enfold.store import tree as nodes
from enfold.store.database import Database

PAGE = 50
"""Entries that are read, and drawn, at a time."""

PageItem: TypeAlias = StoredMessage | Edit | Snapshot
"""A message, what is shown in its place, or the summary of what is not shown."""


@dataclass(frozen=True, slots=True)
class PageMark:
    """Where a page begins; the page before it ends there."""

    depth: int
    """All messages after the cutoff from this depth on are on later pages."""
    entry: int | None = None
    """So many of what the snapshot shows are still on earlier pages. None: all of them."""


@dataclass(frozen=True, slots=True)
class PageEntry:
    """Something that is shown, with the branches that part there."""

    item: PageItem
    siblings: tuple[str, ...] = ()
    """The ids of all messages that follow the same one, this among them, oldest first."""
    is_answer: bool = False
    """True for what a model said right after a person: another answer can be had."""

    @property
    def id(self) -> str:
        """What tells it from all others: of an edit, both its own and its message's."""
        if isinstance(self.item, Edit):
            return f"{self.item.message} {self.item.id}"
        return self.item.id


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """Some of what is shown, oldest first."""

    session: SessionRecord
    entries: tuple[PageEntry, ...]
    earlier: PageMark | None
    """Where to go on from upwards. None if this is the beginning."""
    snapshot: Snapshot | None
    """The compression in use."""

    @property
    def standing(self) -> tuple[int, str | None, str | None]:
        """As `read_standing` gave it when this was read."""
        used = self.snapshot.id if self.snapshot is not None else None
        return self.session.updated_at, self.session.tip, used


def read_standing(
    db: Database, key: SessionKey, static_settings: Sequence[SettingsLevel]
) -> tuple[int, str | None, str | None]:
    """What tells whether anything has changed: when, the last message, the compression in use."""
    session = sessions.get(db, key)
    share = read_session_settings(db, key, static_settings).share_across_branches
    snapshot = snapshots.applicable(db, key, share_across_branches=share)
    return session.updated_at, session.tip, snapshot.id if snapshot is not None else None


def read_page(
    db: Database,
    key: SessionKey,
    static_settings: Sequence[SettingsLevel],
    before: PageMark | None = None,
    *,
    limit: int = PAGE,
) -> TranscriptPage:
    """The last page of the current branch, or the one before a mark."""
    share = read_session_settings(db, key, static_settings).share_across_branches
    bottom = nodes.tip_node(db, key, None)
    snapshot = snapshots.applicable_at(db, key, bottom, share_across_branches=share)
    cutoff = (snapshot.cutoff_depth or 0) if snapshot else 0
    end = bottom.depth + 1 if before is None else before.depth
    first = max(cutoff + 1, end - limit)
    rows = tree.between(db, key, None, first, end - 1) if first < end else ()
    head: list[PageItem] = []
    earlier = PageMark(first) if first > cutoff + 1 else None
    if earlier is None and snapshot is not None:
        all_shown = _shown(db, snapshot)
        until = before.entry if before is not None and before.entry is not None else len(all_shown)
        start = max(0, until - max(0, limit - len(rows)))
        head = all_shown[start:until]
        earlier = PageMark(first, start) if start else None
    items = (*head, *rows)
    siblings = _siblings(db, key, items)
    return TranscriptPage(
        session=sessions.get(db, key),
        entries=tuple(
            PageEntry(item, siblings.get(item.id, ()), is_answer=_is_answer(db, key, item))
            for item in items
        ),
        earlier=earlier,
        snapshot=snapshot,
    )


def _shown(db: Database, snapshot: Snapshot) -> list[PageItem]:
    """What the snapshot shows; one that shows no summary is said to have been at work first."""
    entries = views.entries(db, snapshot)
    shown: list[PageItem] = [
        snapshot if isinstance(entry, SummaryPlace) else entry for entry in entries
    ]
    return shown if snapshot in shown else [snapshot, *shown]


def _siblings(
    db: Database, key: SessionKey, items: Sequence[PageItem]
) -> dict[str, tuple[str, ...]]:
    """For the messages at which branches part, all that follow the same message."""
    if len(tree.branches(db, key)) < 2:  # noqa: PLR2004 - one branch parts nowhere
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for item in items:
        if isinstance(item, StoredMessage):
            ids = tuple(row.id for row in tree.children(db, key, item.parent))
            if len(ids) > 1:
                found[item.id] = ids
    return found


def _is_answer(db: Database, key: SessionKey, item: PageItem) -> bool:
    if not isinstance(item, StoredMessage) or item.role != "assistant" or item.parent is None:
        return False
    return tree.get(db, key, item.parent).role == "user"


def tip_below(db: Database, key: SessionKey, id: str) -> str:
    """The end of the branch through a message; of several, of the one that was begun last."""
    wanted = nodes.require(db, key, id).key
    for branch in reversed(tree.branches(db, key)):
        if nodes.on_path(db, nodes.require(db, key, branch.tip).key, [wanted]):
            return branch.tip
    return id
