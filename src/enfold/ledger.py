"""The ledger: what a condensation took out, enough to put it back exactly.

It belongs to one condensed conversation, of which it holds a digest. A change says which messages
of the condensed conversation stand for which original ones, and holds those. A text that was
shortened without loss needs less: a recipe, which says where in the condensed conversation its
pieces are. Messages that were added afterwards are kept; a conversation that was altered otherwise
is refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

from enfold.errors import RestoreError
from enfold.jsontext import dumps
from enfold.places import Path, text_at, texts_within, with_text_at
from enfold.recipes import Recipe, Shortening

VERSION = 1

Place: TypeAlias = tuple[int, Path]
"""A message of the condensed conversation, and a value inside it."""
Edits: TypeAlias = Mapping[int, Sequence[Shortening]]
"""What was shortened in each message, by its index before the condensation."""


@dataclass(frozen=True, slots=True)
class Change:
    """`taken` messages from `at` on stand for the original ones."""

    at: int
    taken: int
    originals: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class TextChange:
    """A text inside a message stands for a longer one."""

    place: Place
    recipe: Recipe
    sources: tuple[Place, ...] = ()
    """Where the other texts are that the recipe takes pieces from."""

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return {
            "place": _place_as_json(self.place),
            "sources": [_place_as_json(place) for place in self.sources],
            **self.recipe.as_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TextChange:
        """From a file; `KeyError`, `TypeError` or `ValueError` if it is none."""
        sources = tuple(_place_from_json(place) for place in value["sources"])
        return cls(_place_from_json(value["place"]), Recipe.from_json(value), sources)


@dataclass(frozen=True, slots=True)
class Ledger:
    """All changes, in order, and the digest of what they apply to."""

    digest: str
    length: int
    """How many messages the condensed conversation has."""
    changes: tuple[Change, ...] = ()
    texts: tuple[TextChange, ...] = ()
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
            "texts": [text.as_json() for text in self.texts],
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
            texts = tuple(TextChange.from_json(raw) for raw in value.get("texts", ()))
            return cls(str(value["digest"]), int(value["length"]), changes, texts)
        except (KeyError, TypeError, ValueError) as error:
            raise RestoreError(f"not a ledger: {type(error).__name__} at {error}") from None


def write(before: Sequence[Any], after: Sequence[Any], edits: Edits | None = None) -> Ledger:
    """The ledger that leads from the wire messages after a condensation to those before it.

    Messages that are the same in both, byte for byte, are the fixed points, and so are those that
    differ only in texts for which `edits` has recipes; what lies between two of them is a change.
    """
    old, new = [dumps(message) for message in before], [dumps(message) for message in after]
    digest = _digest(new)
    texts: list[TextChange] = []
    for index, at, changed in _edited(before, after, edits or {}):
        restored = _with_texts(after, changed).get(at, after[at])
        if dumps(restored) == old[index]:
            old[index] = new[at] = b"edited %d" % at  # no message looks like that, so they meet
            texts += changed
    changes: list[Change] = []
    old_at = new_at = 0
    for old_fixed, new_fixed in (*_fixed_points(old, new), (len(old), len(new))):
        if old_fixed > old_at or new_fixed > new_at:
            originals = tuple(before[old_at:old_fixed])
            changes.append(Change(new_at, new_fixed - new_at, originals))
        old_at, new_at = old_fixed + 1, new_fixed + 1
    return Ledger(digest, len(new), tuple(changes), tuple(texts))


def restore(messages: Sequence[Any], ledger: Ledger) -> list[Any]:
    """The wire messages of before the condensation, and whatever was added after it."""
    condensed = [dumps(message) for message in messages[: ledger.length]]
    if len(condensed) != ledger.length or _digest(condensed) != ledger.digest:
        raise RestoreError(
            f"the ledger belongs to {ledger.length} messages with the digest {ledger.digest}; "
            "this conversation is another, or was altered"
        )
    whole = list(messages)
    for index, message in _with_texts(messages, ledger.texts).items():
        whole[index] = message
    restored: list[Any] = []
    at = 0
    for change in ledger.changes:
        restored += [*whole[at : change.at], *change.originals]
        at = change.at + change.taken
    return [*restored, *whole[at:]]


def _edited(
    before: Sequence[Any], after: Sequence[Any], edits: Edits
) -> Iterator[tuple[int, int, list[TextChange]]]:
    """Each edited message whose differences recipes explain: its index before and after."""
    places = _places(after, edits)
    at = 0
    for index, shortenings in sorted(edits.items()):
        if index >= len(before):
            return  # a wire on which messages are divided otherwise
        shown = {message for each in shortenings for message, _ in places.get(each.shown, ())}
        for candidate in sorted(message for message in shown if message >= at):
            changed = _text_changes(before[index], candidate, after, shortenings, places)
            if changed is not None:
                yield index, candidate, changed
                at = candidate + 1
                break


def _places(after: Sequence[Any], edits: Edits) -> dict[str, list[Place]]:
    """Where the texts are that recipes speak of."""
    wanted = {each.shown for shortenings in edits.values() for each in shortenings}
    wanted |= {
        source.text
        for shortenings in edits.values()
        for each in shortenings
        for source in each.sources
    }
    places: dict[str, list[Place]] = {}
    for index, message in enumerate(after):
        for path, text in texts_within(message):
            if text in wanted:
                places.setdefault(text, []).append((index, path))
    return places


def _text_changes(
    old: Any,
    at: int,
    after: Sequence[Any],
    shortenings: Sequence[Shortening],
    places: Mapping[str, Sequence[Place]],
) -> list[TextChange] | None:
    """How the message after becomes the one before; None if recipes alone do not say it."""
    known = {(each.original, each.shown): each for each in shortenings}
    changed: list[TextChange] = []
    for path, was, now in _differences(old, after[at]):
        found = known.get((was, now)) if isinstance(was, str) and isinstance(now, str) else None
        if found is None or not all(source.text in places for source in found.sources):
            return None
        sources = tuple(places[source.text][0] for source in found.sources)
        changed.append(TextChange((at, path), found.recipe, sources))
    return changed


def _differences(old: Any, new: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """The values in which two differ, with their path; keys in another order are a difference."""
    if isinstance(old, Mapping) and isinstance(new, Mapping) and list(old) == list(new):
        for key in old:
            yield from _differences(old[key], new[key], (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (was, now) in enumerate(zip(old, new, strict=True)):
            yield from _differences(was, now, (*path, index))
    elif old is not new and (type(old) is not type(new) or old != new):
        yield path, old, new


def _with_texts(messages: Sequence[Any], texts: Sequence[TextChange]) -> dict[int, Any]:
    """The messages that hold shortened texts, by index, with those restored."""
    whole: dict[int, Any] = {}
    for change in texts:
        index, path = change.place
        sources = [_text_at(messages, place) for place in change.sources]
        original = change.recipe.follow(_text_at(messages, change.place), sources)
        whole[index] = with_text_at(whole.get(index, messages[index]), path, original)
    return whole


def _text_at(messages: Sequence[Any], place: Place) -> str:
    index, path = place
    text = text_at(messages, (index, *path))
    if text is None:
        raise RestoreError(f"there is no text at {list(path)} of message {index}")
    return text


def _place_as_json(place: Place) -> list[Any]:
    message, path = place
    return [message, *path]


def _place_from_json(value: Any) -> Place:
    message, *path = value
    if not all(isinstance(step, str | int) for step in path):
        raise ValueError("path")
    return int(message), tuple(path)


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
