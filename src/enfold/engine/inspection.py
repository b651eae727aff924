"""Reads for screens: pages of a transcript, settings with their levels, compressions compared.

A transcript is what the model is sent: the entries of the applicable snapshot and the messages
after its cutoff. It is read in pages from its end, at a cost that does not depend on the length of
the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from enfold.engine.changes import (
    Comparison,
    MessagePlaces,
    read_comparison,
    read_message_places,
)
from enfold.engine.state import (
    EffectiveThreshold,
    SettingsLevel,
    read_effective,
    read_session_settings,
)
from enfold.records import (
    Edit,
    SessionKey,
    SessionRecord,
    Snapshot,
    StoredMessage,
    SummaryPlace,
)
from enfold.store import catalog, sessions, snapshots, tree
from enfold.store.database import Database

if TYPE_CHECKING:
    from enfold.engine.engine import Engine
    from enfold.engine.results import Status
    from enfold.engine.session import Session

PAGE = 50
"""Entries of one page."""

PageItem: TypeAlias = StoredMessage | Edit | Snapshot
"""A message, its edited form, or the summary that replaces messages."""
SessionVersion: TypeAlias = tuple[int, str | None, str | None]
"""The time of the last change, the last message and the snapshot in use."""


@dataclass(frozen=True, slots=True)
class PageMark:
    """The start of a page; the page before it ends here."""

    depth: int
    """Messages after the cutoff from this depth on are on later pages."""
    entry: int | None = None
    """The number of snapshot entries on earlier pages. None: all of them."""


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One item of a page, with the branches that start there."""

    item: PageItem
    siblings: tuple[str, ...] = ()
    """The ids of all messages with the same parent, this one included, oldest first."""
    is_answer: bool = False
    """True for a model's message right after a user's message: it can be regenerated."""

    @property
    def id(self) -> str:
        """Return an id that is unique on the page."""
        if isinstance(self.item, Edit):
            return f"{self.item.message} {self.item.id}"
        return self.item.id


@dataclass(frozen=True, slots=True)
class TranscriptPage:
    """Entries of a transcript, oldest first."""

    session: SessionRecord
    entries: tuple[PageEntry, ...]
    earlier: PageMark | None
    """The mark of the page before this one. None on the first page."""
    snapshot: Snapshot | None
    """The snapshot in use."""

    @property
    def version(self) -> SessionVersion:
        """Return the version of the session at the time of reading."""
        used = self.snapshot.id if self.snapshot is not None else None
        return self.session.updated_at, self.session.tip, used


async def read_version(engine: Engine, session: Session) -> SessionVersion:
    """Return the version of a session; it changes with everything that a transcript shows."""

    def read(db: Database) -> SessionVersion:
        stored = sessions.get(db, session.key)
        settings = read_session_settings(db, session.key, engine.static_settings)
        shared = settings.share_across_branches
        snapshot = snapshots.applicable(db, session.key, share_across_branches=shared)
        return stored.updated_at, stored.tip, snapshot.id if snapshot is not None else None

    return await engine.store.read(read)


async def read_page(
    engine: Engine, session: Session, before: PageMark | None = None, *, limit: int = PAGE
) -> TranscriptPage:
    """Return the last page of the current branch, or the page before a mark."""
    return await engine.store.read(_page, session.key, engine.static_settings, before, limit)


async def read_last_input(engine: Engine, session: Session) -> int | None:
    """Return the tokens that the last turn sent, as the provider counted them."""
    return (await engine.store.read(catalog.last_input_of_session, session.key))[0]


async def estimate_unstored(
    engine: Engine, session: Session, status: Status, snapshot: Snapshot | None
) -> int:
    """Return about how many tokens a client sends with its messages: system prompt and tools.

    They are not stored. The provider counted them in the last request, with the view of that time.
    """
    sent, at = await engine.store.read(catalog.last_input_of_session, session.key)
    if sent is None:
        return 0
    history = status.decision.load.history
    if snapshot is not None and snapshot.created_at > at:
        history = snapshot.content.get("originalTokenCount") or history
    return max(0, int(sent / status.decision.correction) - history)


async def find_tip(engine: Engine, session: Session, message: str) -> str:
    """Return the tip of the newest branch that contains a message."""

    def read(db: Database) -> str:
        wanted = tree.require(db, session.key, message).key
        for branch in reversed(tree.branches(db, session.key)):
            if tree.on_path(db, tree.require(db, session.key, branch.tip).key, [wanted]):
                return branch.tip
        return message

    return await engine.store.read(read)


async def read_messages(
    engine: Engine, session: Session, first: int, last: int
) -> Sequence[StoredMessage]:
    """Return the messages of the session's branch at the depths from first to last."""
    return await engine.store.read(tree.between, session.key, session.tip, first, last)


async def read_summarized(
    engine: Engine, session: Session, snapshot: Snapshot
) -> tuple[StoredMessage, ...]:
    """Return the messages that a snapshot summarized, without those that its view still shows."""
    reach = snapshot.content["messageRange"]
    ends = [(reach["firstMessageId"], reach["lastMessageId"])]

    def read(db: Database) -> tuple[StoredMessage, ...]:
        (rows,) = tree.segments(db, session.key, ends)
        shown = {
            entry.message if isinstance(entry, Edit) else entry.id
            for entry in snapshots.entries(db, snapshot)
            if not isinstance(entry, SummaryPlace)
        }
        return tuple(row for row in rows if row.id not in shown)

    return await engine.store.read(read)


async def read_placement(engine: Engine, session: Session) -> MessagePlaces:
    """Return for every message of the branch whether the model is sent it."""
    return await engine.store.read(
        read_message_places, session.key, engine.static_settings, session.tip
    )


async def compare_views(engine: Engine, session: Session, snapshot: str) -> Comparison:
    """Return the views before and after the compression of a snapshot."""
    return await engine.store.read(read_comparison, session.key, snapshot)


async def read_set_values(engine: Engine, session: Session | None) -> Mapping[str, Any]:
    """Return the settings that are set in a session; without one, in the database."""
    if session is None:
        return await engine.store.read(catalog.settings, "global")
    return (await session.record()).settings


async def read_threshold(engine: Engine, session: Session | None = None) -> EffectiveThreshold:
    """Return the threshold in force in a session; without one, that of all sessions."""
    key = None if session is None else session.key
    return await engine.store.read(read_effective, engine.static_settings, key)


def _page(
    db: Database,
    key: SessionKey,
    levels: Sequence[SettingsLevel],
    before: PageMark | None,
    limit: int,
) -> TranscriptPage:
    share = read_session_settings(db, key, levels).share_across_branches
    bottom = tree.tip_node(db, key, None)
    snapshot = snapshots.applicable_at(db, key, bottom, share_across_branches=share)
    cutoff = (snapshot.cutoff_depth or 0) if snapshot else 0
    end = bottom.depth + 1 if before is None else before.depth
    first = max(cutoff + 1, end - limit)
    rows = tree.between(db, key, None, first, end - 1) if first < end else ()
    head: list[PageItem] = []
    earlier = PageMark(first) if first > cutoff + 1 else None
    if earlier is None and snapshot is not None:
        # All messages after the cutoff are read; the rest of the page comes from the snapshot.
        # One without a summary comes before its entries.
        entries = snapshots.entries(db, snapshot)
        shown: list[PageItem] = [
            snapshot if isinstance(entry, SummaryPlace) else entry for entry in entries
        ]
        shown = shown if snapshot in shown else [snapshot, *shown]
        until = before.entry if before is not None and before.entry is not None else len(shown)
        start = max(0, until - max(0, limit - len(rows)))
        head = shown[start:until]
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


def _siblings(
    db: Database, key: SessionKey, items: Sequence[PageItem]
) -> dict[str, tuple[str, ...]]:
    """Return the siblings of every message where branches start."""
    if len(tree.branches(db, key)) < 2:  # noqa: PLR2004 - one branch has no siblings
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
