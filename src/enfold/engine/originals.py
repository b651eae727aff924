"""Originals: what edited messages said, for whoever condenses them again.

An edit may point to other messages for what it leaves out, by their numbers in the view. A
compression can take those away or give them other numbers, so it works on a view in which such
edits are undone. Those that still hold afterwards are shown again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from enfold.condensation import Condensation, Kept
from enfold.engine.viewing import message_of
from enfold.messages import Message
from enfold.store import tree
from enfold.store.database import Database
from enfold.store.records import SessionKey, StoredMessage
from enfold.tokens import count_message
from enfold.view import Shown, View


def without_pointers(db: Database, key: SessionKey, view: View) -> View:
    """The view with messages that point to others as they were said."""
    indexes = [index for index, shown in enumerate(view.shown) if shown.points_to]
    if not indexes:
        return view
    shown = list(view.shown)
    for index, row in zip(indexes, _rows(db, key, view, indexes), strict=True):
        message = message_of(row)
        is_counted = row.tokenizer == view.tokenizer
        tokens = row.tokens if is_counted else count_message(message, view.tokenizer)
        shown[index] = Shown(row.id, message, tokens, row.estimate, depth=row.depth)
    return replace(view, shown=tuple(shown))


def originals(
    db: Database, key: SessionKey, view: View, indexes: Iterable[int]
) -> dict[int, Message]:
    """What the edited messages among these said, by index."""
    edited = [index for index in indexes if view.shown[index].edit is not None]
    rows = _rows(db, key, view, edited)
    return {index: message_of(row) for index, row in zip(edited, rows, strict=True)}


def still_holding(view: View, answer: Condensation) -> frozenset[int]:
    """Indexes of messages whose pointers may be shown again after an answer that knew none.

    That is where nothing was folded, and what a message points to is as it was: kept, and if it
    points elsewhere itself, holding too.
    """
    if answer.summary is not None:
        return frozenset()
    kept = {entry.index for entry in answer.entries if isinstance(entry, Kept)}
    places = {shown.id: index for index, shown in enumerate(view.shown)}
    pointing = {index for index, shown in enumerate(view.shown) if shown.points_to}
    holding = pointing & kept
    while True:
        firm = (kept - pointing) | holding
        still = {
            index
            for index in holding
            if all(places.get(id) in firm for id in view.shown[index].points_to)
        }
        if still == holding:
            return frozenset(holding)
        holding = still


def _rows(db: Database, key: SessionKey, view: View, indexes: list[int]) -> list[StoredMessage]:
    if not indexes:
        return []
    ends = [(view.shown[index].id,) * 2 for index in indexes]
    return [row for (row,) in tree.segments(db, key, ends)]
