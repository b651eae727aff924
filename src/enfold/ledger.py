"""The ledger: what a condensation took out, enough to put it back exactly.

It belongs to one condensed conversation, of which it holds a digest. Each change says which
messages of the condensed conversation stand for which original ones. Messages that were added
afterwards are kept; a conversation that was altered otherwise is refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from enfold.errors import RestoreError
from enfold.jsontext import dumps

VERSION = 1


@dataclass(frozen=True, slots=True)
class Change:
    """`taken` messages from `at` on stand for the original ones."""

    at: int
    taken: int
    originals: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Ledger:
    """All changes, in order, and the digest of what they apply to."""

    digest: str
    length: int
    """How many messages the condensed conversation has."""
    changes: tuple[Change, ...] = ()
    version: int = VERSION

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        changes = [
            {"at": change.at, "taken": change.taken, "originals": list(change.originals)}
            for change in self.changes
        ]
        return {
            "version": self.version,
            "digest": self.digest,
            "length": self.length,
            "changes": changes,
        }

    @classmethod
    def from_json(cls, value: Any) -> Ledger:
        """From a file; `RestoreError` says what is wrong with it."""
        version = value.get("version") if isinstance(value, Mapping) else None
        if version != VERSION:
            raise RestoreError(f"ledger version {version!r}: expected {VERSION}")
        try:
            changes = tuple(
                Change(int(raw["at"]), int(raw["taken"]), tuple(raw["originals"]))
                for raw in value["changes"]
            )
            return cls(str(value["digest"]), int(value["length"]), changes)
        except (KeyError, TypeError, ValueError) as error:
            raise RestoreError(f"not a ledger: {type(error).__name__} at {error}") from None


def write(before: Sequence[Any], after: Sequence[Any]) -> Ledger:
    """The ledger that leads from the wire messages after a condensation to those before it.

    Messages that are the same in both, byte for byte, are the fixed points; what lies between two
    of them is a change.
    """
    old, new = [dumps(message) for message in before], [dumps(message) for message in after]
    changes: list[Change] = []
    old_at = new_at = 0
    for old_fixed, new_fixed in (*_fixed_points(old, new), (len(old), len(new))):
        if old_fixed > old_at or new_fixed > new_at:
            originals = tuple(before[old_at:old_fixed])
            changes.append(Change(new_at, new_fixed - new_at, originals))
        old_at, new_at = old_fixed + 1, new_fixed + 1
    return Ledger(_digest(new), len(new), tuple(changes))


def restore(messages: Sequence[Any], ledger: Ledger) -> list[Any]:
    """The wire messages of before the condensation, and whatever was added after it."""
    condensed = [dumps(message) for message in messages[: ledger.length]]
    if len(condensed) != ledger.length or _digest(condensed) != ledger.digest:
        raise RestoreError(
            f"the ledger belongs to {ledger.length} messages with the digest {ledger.digest}; "
            "this conversation is another, or was altered"
        )
    restored: list[Any] = []
    at = 0
    for change in ledger.changes:
        restored += [*messages[at : change.at], *change.originals]
        at = change.at + change.taken
    return [*restored, *messages[at:]]


def _fixed_points(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Messages that are in both, in the same order: a greedy walk, which strategies make exact.

    A strategy keeps the order, so the next place at which a message of the new list stands in the
    old one is the right one.
    """
    places: dict[bytes, list[int]] = {}
    for index, message in enumerate(old):
        places.setdefault(message, []).append(index)
    points: list[tuple[int, int]] = []
    at = 0
    for index, message in enumerate(new):
        later = places.get(message, [])
        first = bisect_left(later, at)
        if first < len(later):
            points.append((later[first], index))
            at = later[first] + 1
    return points


def _digest(messages: Sequence[bytes]) -> str:
    together = blake2b(digest_size=16)
    for message in messages:
        together.update(len(message).to_bytes(8, "big"))
        together.update(message)
    return together.hexdigest()
