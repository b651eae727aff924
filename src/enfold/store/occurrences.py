"""Occurrences: where on a branch words occur, and which messages stand around there.

Read are only the small columns of messages, however long the messages are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from enfold.jsontext import dump_text
from enfold.store import nodes, search, tree
from enfold.store.database import Database
from enfold.store.nodes import Node
from enfold.store.records import StoredMessage
from enfold.store.search import Where
from enfold.store.words import Phrase


@dataclass(frozen=True, slots=True)
class Spot:
    """A message's place on a branch, without what it says."""

    key: int
    id: str
    depth: int
    role: str
    name: str | None
    tokens: int


@dataclass(frozen=True, slots=True)
class Found:
    """Where phrases occur on a branch."""

    depths: Mapping[Phrase, Sequence[int]]
    """Of the messages that have it, oldest first; phrases that occur nowhere are left out."""
    length: int
    """How many messages the branch has."""


Choose: TypeAlias = Callable[[Found], Sequence[tuple[int, int]]]
"""Which stretches of the branch to look at, each by its first and last depth."""


def around(
    db: Database, where: Where, phrases: Iterable[Phrase], choose: Choose, *, most: int
) -> tuple[Found, list[list[Spot]]]:
    """Where each phrase occurs on the branch to the tip, and the stretches chosen by that.

    Of each phrase the newest `most` occurrences are looked at. Stretches are given oldest first.
    """
    tip = nodes.tip(db, where.one_session(), where.tip)
    found = _find(db, where, tip, phrases, most)
    return found, [_stretch(db, tip, first, last) for first, last in choose(found)]


def message_at(db: Database, where: Where, position: int) -> StoredMessage:
    """The message at a place of the branch to the tip; the first is 1."""
    return tree.at_position(db, where.one_session(), position, where.tip)


def texts(db: Database, _where: Where, spots: Iterable[Spot]) -> dict[int, str]:
    """What can be found of the messages, by key; those without any text are left out."""
    keys = dump_text([spot.key for spot in spots])
    return {row["key"]: row["text"] for row in db.rows("texts", keys=keys)}


def _find(db: Database, where: Where, tip: Node, phrases: Iterable[Phrase], most: int) -> Found:
    keys = {phrase: search.newest_keys(db, phrase, where, limit=most) for phrase in phrases}
    everywhere = {key for found in keys.values() for key in found}
    allowed = nodes.on_path(db, tip.key, everywhere) if everywhere else set()
    rows = db.rows("spots", keys=dump_text(sorted(allowed)))
    depths = {row["key"]: row["depth"] for row in rows}
    found = {
        phrase: sorted(depths[key] for key in of if key in depths) for phrase, of in keys.items()
    }
    return Found({phrase: each for phrase, each in found.items() if each}, tip.depth)


def _stretch(db: Database, tip: Node, first: int, last: int) -> list[Spot]:
    bottom = nodes.ancestor(db, tip, last)
    rows = db.rows("spots_of_line", bottom=bottom.key, above=first - 1)
    return sorted((Spot(**dict(row)) for row in rows), key=lambda spot: spot.depth)
