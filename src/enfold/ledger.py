"""The ledger: the record that restores a condensed conversation exactly.

It belongs to one condensed conversation, of which it holds a digest. A change says which messages
of the condensed conversation stand for which original ones, and holds those. A text that was
shortened without loss needs less: a recipe, which says where in the condensed conversation its
pieces are. Messages that were added afterwards are kept. Messages that were altered are named, and
the rest is restored; another conversation is refused.
"""

from __future__ import annotations

import json
import re
import warnings
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import blake2b
from itertools import chain
from typing import Any, Literal, TypeAlias

from enfold.encodings import decode, prefix
from enfold.errors import RestoreError
from enfold.jsontext import Path, dumps, text_at, texts_within, with_text_at
from enfold.messages import Data, Message, Text, ToolCall, ToolResult


@dataclass(frozen=True, slots=True)
class Form:
    """The form of lines: bare, behind a sign, behind their numbers, or escaped as in JSON."""

    sign: str = ""
    """Prefix of every line, as `+` in a patch."""
    separator: str = ""
    """Text between a line's number and the line. Empty: lines have no numbers."""
    width: int = 0
    """Width of numbers, with the blanks before them. 0: as wide as their digits."""
    every: int = 1
    """Distance between lines that have numbers."""
    phase: int = 0
    """Remainder of those numbers when they are divided by `every`."""
    escaped: bool = False
    """True if the lines are inside a JSON string."""
    is_ascii: bool = False
    """True if that string escapes all that is not ASCII."""

    def bare(self, text: str) -> list[str]:
        """Return the lines of a text in this form, without the additions of the form."""
        lines = (json.loads(f'"{text}"') if self.escaped else text).split("\n")
        if self.separator and self.every > 1:
            numbered = re.compile(rf"^\d+{re.escape(self.separator)}")
            return [
                line[found.end() :] if (found := numbered.match(line)) else line for line in lines
            ]
        if self.separator:
            return [line.split(self.separator, 1)[1] for line in lines]
        return [line[len(self.sign) :] for line in lines] if self.sign else lines

    def text(self, lines: Sequence[str], first: int = 0) -> str:
        """The lines in this form; `first` is the number of the first of them."""
        if self.separator:
            numbered = enumerate(lines, first)
            lines = [
                prefix(n, self.width, self.separator) + line
                if n % self.every == self.phase
                else line
                for n, line in numbered
            ]
        elif self.sign:
            lines = [self.sign + line for line in lines]
        text = "\n".join(lines)
        return json.dumps(text, ensure_ascii=self.is_ascii)[1:-1] if self.escaped else text


BARE = Form()


@dataclass(frozen=True, slots=True)
class VisiblePiece:
    """A range of the shortened text itself."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class CopiedPiece:
    """A range of a text in view, whose lines may be in another form."""

    source: int
    """Index of the recipe's source; `ITSELF` is the shortened text."""
    start: int
    stop: int
    of: Form = BARE
    to: Form = BARE
    first: int = 0
    """The number of the first line, where lines are numbered."""

    def take(self, text: str) -> str:
        """The range of the source's text, in the form it is wanted in."""
        piece = text[self.start : self.stop]
        if self.of == self.to == BARE:
            return piece
        return self.to.text(self.of.bare(piece), self.first)


@dataclass(frozen=True, slots=True)
class StoredPiece:
    """A text that is nowhere in view."""

    text: str


Piece: TypeAlias = VisiblePiece | CopiedPiece | StoredPiece
ITSELF = -1


@dataclass(frozen=True, slots=True)
class Recipe:
    """The pieces of the original, the encodings to undo after joining them, and its digest."""

    pieces: tuple[Piece, ...]
    digest: str
    encodings: tuple[tuple[str, Any], ...] = ()
    """The names and the data for decoding, in the order in which they were applied."""

    def follow(self, shown: str, sources: Sequence[str]) -> str:
        """Return the original; raise `RestoreError` if the result is another text."""
        try:
            text = "".join([_take(piece, shown, sources) for piece in self.pieces])
        except (IndexError, ValueError) as error:
            raise RestoreError(f"a piece is not where it was ({type(error).__name__})") from None
        for name, how in reversed(self.encodings):
            text = decode(name, text, how)
        if digest(text) != self.digest:
            raise RestoreError("the restored text is not the one that was shortened")
        return text

    @property
    def is_reference(self) -> bool:
        """True if all of the original is literally in view."""
        return not self.encodings and not any(
            isinstance(piece, StoredPiece) for piece in self.pieces
        )

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        encodings = [list(each) for each in self.encodings]
        return {
            "digest": self.digest,
            "pieces": [_piece_as_json(piece) for piece in self.pieces],
            **({"encodings": encodings} if encodings else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Recipe:
        """From a file; `KeyError`, `TypeError` or `ValueError` if it is none."""
        return cls(
            tuple(_piece_from_json(piece) for piece in value["pieces"]),
            str(value["digest"]),
            tuple((str(name), how) for name, how in value.get("encodings", ())),
        )


@dataclass(frozen=True, slots=True)
class PieceSource:
    """A text in view that others are restored from."""

    message: int
    """The index of the message that shows it."""
    text: str


@dataclass(frozen=True, slots=True)
class Shortening:
    """A text, the text that is shown in its place, and the recipe to restore it."""

    original: str
    shown: str
    recipe: Recipe
    sources: tuple[PieceSource, ...] = ()

    def restore(self) -> str:
        """Return the original of a shown text."""
        return self.recipe.follow(self.shown, [source.text for source in self.sources])


def digest(text: str) -> str:
    """Return the digest of a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _take(piece: Piece, shown: str, sources: Sequence[str]) -> str:
    if isinstance(piece, VisiblePiece):
        return shown[piece.start : piece.stop]
    if isinstance(piece, StoredPiece):
        return piece.text
    return piece.take(shown if piece.source == ITSELF else sources[piece.source])


def _piece_as_json(piece: Piece) -> Any:
    """A range of its own as two numbers, a text set aside as a text, a copy as an object."""
    if isinstance(piece, VisiblePiece):
        return [piece.start, piece.stop]
    if isinstance(piece, StoredPiece):
        return piece.text
    found: dict[str, Any] = {"from": piece.source, "at": [piece.start, piece.stop]}
    if piece.of != BARE:
        found["of"] = _form_as_json(piece.of)
    if piece.to != BARE:
        found["to"] = _form_as_json(piece.to)
    if piece.first:
        found["first"] = piece.first
    return found


def _piece_from_json(value: Any) -> Piece:
    if isinstance(value, str):
        return StoredPiece(value)
    if isinstance(value, Mapping):
        start, stop = value["at"]
        return CopiedPiece(
            int(value["from"]),
            int(start),
            int(stop),
            Form(**value.get("of", {})),
            Form(**value.get("to", {})),
            int(value.get("first", 0)),
        )
    start, stop = value
    return VisiblePiece(int(start), int(stop))


def _form_as_json(form: Form) -> dict[str, Any]:
    fields = ("sign", "separator", "width", "every", "phase", "escaped", "is_ascii")
    values = {name: getattr(form, name) for name in fields}
    return {name: each for name, each in values.items() if each != getattr(BARE, name)}


VERSION = 1

Place: TypeAlias = tuple[int, Path]
"""A message of the condensed conversation, and a value inside it."""
Edits: TypeAlias = Mapping[int, Sequence[Shortening]]
"""Recipes of each shortened message, by its index before the condensation."""


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
    """Places of the other texts that the recipe takes pieces from."""

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
class ContentReference:
    """A text that a marker leaves out, and the message that shows it."""

    type: Literal["file", "output", "tool_result"]
    index: int
    """The message with the marker."""
    original_index: int
    """The message that shows the text. Both count from 0 in the conversation as it was."""
    path: str | None
    """The file, if the call names one."""
    operation: str | None
    """The tool that was called."""
    hash: str
    """The digest of the text that was left out; restoring compares it."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """All changes, in order, and the digest of the messages that they apply to."""

    digest: str
    length: int
    """Number of messages of the condensed conversation."""
    changes: tuple[Change, ...] = ()
    texts: tuple[TextChange, ...] = ()
    version: int = VERSION
    digests: tuple[str, ...] = ()
    """The digest of each message of the condensed conversation. Empty in older ledgers."""
    references: tuple[ContentReference, ...] = ()
    """Places that show the content of shortened texts."""

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
            "digests": list(self.digests),
            **(
                {"references": [asdict(each) for each in self.references]}
                if self.references
                else {}
            ),
        }

    @classmethod
    def from_json(cls, value: Any) -> Ledger:
        """Return the ledger of a file's JSON; raise `RestoreError` if it is invalid."""
        version = value.get("version") if isinstance(value, Mapping) else None
        if version != VERSION:
            raise RestoreError(f"ledger version {version!r}: expected {VERSION}")
        try:
            changes = tuple(
                Change(int(raw["at"]), int(raw["taken"]), tuple(raw["originals"]))
                for raw in value["changes"]
            )
            texts = tuple(TextChange.from_json(raw) for raw in value.get("texts", ()))
            digests = tuple(map(str, value.get("digests", ())))
            references = tuple(ContentReference(**raw) for raw in value.get("references", ()))
            return cls(
                str(value["digest"]),
                int(value["length"]),
                changes,
                texts,
                digests=digests,
                references=references,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise RestoreError(f"not a ledger: {type(error).__name__} at {error}") from None


def write(before: Sequence[Any], after: Sequence[Any], edits: Edits | None = None) -> Ledger:
    """The ledger that leads from the wire messages after a condensation to those before it.

    Messages that are the same in both, byte for byte, are the fixed points, and so are those that
    differ only in texts for which `edits` has recipes; what lies between two of them is a change.
    """
    # Hashes take the place of bytes, which are as large as the conversation itself.
    new: list[bytes] = []
    digests: list[str] = []
    together = blake2b(digest_size=16)
    for message in after:
        written = dumps(message)
        new.append(_hash(written))
        digests.append(_digest_of(written))
        _add_to_digest(together, written)
    edited = {} if edits is None else edits
    # Most messages of before are not among those after, which their contents alone tell.
    contents = set(map(_content, after))
    old = [
        _hash(dumps(message)) if _content(message) in contents or index in edited else b""
        for index, message in enumerate(before)
    ]
    texts: list[TextChange] = []
    for index, at, changed in _edited(before, after, edited):
        restored = _with_texts(after, changed).get(at, after[at])
        if _hash(dumps(restored)) == old[index]:
            old[index] = new[at] = b"edited %d" % at  # no hash looks like that, so they meet
            texts += changed
    changes: list[Change] = []
    old_at = new_at = 0
    for old_fixed, new_fixed in chain(_fixed_points(old, new), ((len(old), len(new)),)):
        if old_fixed > old_at or new_fixed > new_at:
            originals = tuple(before[old_at:old_fixed])
            changes.append(Change(new_at, new_fixed - new_at, originals))
        old_at, new_at = old_fixed + 1, new_fixed + 1
    digest = together.hexdigest()
    return Ledger(digest, len(new), tuple(changes), tuple(texts), digests=tuple(digests))


class AlteredWarning(UserWarning):
    """Messages of a condensed conversation were altered; everything else was restored."""


def restore(messages: Sequence[Any], ledger: Ledger) -> list[Any]:
    """Return the wire messages of before the condensation, and those that were added after it.

    Messages that were altered since are named in an `AlteredWarning`.
    """
    restored, altered = restore_unaltered(messages, ledger)
    if altered:
        warnings.warn(AlteredWarning(describe_altered(altered)), stacklevel=2)
    return restored


def describe_altered(altered: Sequence[int]) -> str:
    """Return a sentence that names the messages that were altered, by index from 0."""
    names = ", ".join(map(str, altered))
    were = "messages were" if len(altered) > 1 else "message was"
    return (
        f"{len(altered):,} {were} altered after the condensation and not restored: "
        f"index {names}, counted from 0; everything else was restored"
    )


def restore_unaltered(messages: Sequence[Any], ledger: Ledger) -> tuple[list[Any], tuple[int, ...]]:
    """Return the restored wire messages, and the indexes of condensed ones that were altered.

    An altered message stays as it is now, unless the ledger holds its original. A text that is
    restored from an altered message stays shortened. `RestoreError` is raised if the ledger belongs
    to another conversation.
    """
    altered = set(_altered(messages, ledger))
    whole = list(messages)
    for change in ledger.texts:
        index = change.place[0]
        try:
            whole[index] = _with_texts(messages, (change,), whole)[index]
        except RestoreError:
            if not altered:
                raise
            altered.add(index)
    restored: list[Any] = []
    at = 0
    for taken in ledger.changes:
        restored += [*whole[at : taken.at], *taken.originals]
        at = taken.at + taken.taken
    return [*restored, *whole[at:]], tuple(sorted(altered))


def _altered(messages: Sequence[Any], ledger: Ledger) -> list[int]:
    """Return the indexes of altered messages; raise `RestoreError` if most of them are."""
    condensed = messages[: ledger.length]
    if len(condensed) == ledger.length:
        if _digest(map(dumps, condensed)) == ledger.digest:
            return []
        pairs = zip(condensed, ledger.digests, strict=False)
        found = [index for index, (m, digest) in enumerate(pairs) if _digest_of(dumps(m)) != digest]
        if len(ledger.digests) == ledger.length and 2 * len(found) <= ledger.length:
            return found
    raise RestoreError(
        f"the ledger belongs to {ledger.length} messages with the digest {ledger.digest}; "
        "this conversation is another, or was altered"
    )


def _edited(
    before: Sequence[Any], after: Sequence[Any], edits: Edits
) -> Iterator[tuple[int, int, list[TextChange]]]:
    """Each edited message whose differences recipes explain: its index before and after."""
    places = _places(after, edits) if edits else {}
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
    """Places of the texts that recipes refer to."""
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
    """Return recipes that restore the message; None if recipes alone cannot."""
    by_texts = {(each.original, each.shown): each for each in shortenings}
    changed: list[TextChange] = []
    for path, was, now in _differences(old, after[at]):
        found = by_texts.get((was, now)) if isinstance(was, str) and isinstance(now, str) else None
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


def _with_texts(
    messages: Sequence[Any], texts: Sequence[TextChange], restored: Sequence[Any] | None = None
) -> dict[int, Any]:
    """Return the messages that hold shortened texts, by index, with those restored.

    `restored` are the messages in which some texts were restored already.
    """
    whole: dict[int, Any] = {}
    for change in texts:
        index, path = change.place
        sources = [_text_at(messages, place) for place in change.sources]
        original = change.recipe.follow(_text_at(messages, change.place), sources)
        before = messages[index] if restored is None else restored[index]
        whole[index] = with_text_at(whole.get(index, before), path, original)
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


def _fixed_points(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Yield messages that are in both, in the same order.

    It is a greedy walk, which strategies make exact.

    A strategy keeps the order, so the next place at which a message of the new list stands in the
    old one is the right one.
    """
    places: dict[bytes, int] | None = None
    following = array("q")
    at = 0
    for index, message in enumerate(new):
        if at < len(old) and old[at] == message:
            yield at, index
            at += 1
            continue
        if places is None:
            places, following = _places_after(at, old)
        later = places.get(message, _NOWHERE)
        if later == _NOWHERE:
            continue
        while _NOWHERE < later < at:
            later = following[later]
        if later > _NOWHERE:
            yield later, index
            at = later + 1
            later = following[later]
        places[message] = later


_NOWHERE = -1


def _places_after(start: int, old: Sequence[bytes]) -> tuple[dict[bytes, int], array[int]]:
    """Return the first place of each message from `start` on, and the next place after each."""
    places: dict[bytes, int] = {}
    following = array("q", [_NOWHERE]) * len(old)
    for index in range(len(old) - 1, start - 1, -1):
        following[index] = places.get(old[index], _NOWHERE)
        places[old[index]] = index
    return places, following


def _digest_of(message: bytes) -> str:
    return blake2b(message, digest_size=8).hexdigest()


def _hash(message: bytes) -> bytes:
    return blake2b(message, digest_size=16).digest()


def _digest(messages: Iterable[bytes]) -> str:
    together = blake2b(digest_size=16)
    for message in messages:
        _add_to_digest(together, message)
    return together.hexdigest()


def _add_to_digest(together: blake2b, message: bytes) -> None:
    together.update(len(message).to_bytes(8, "big"))
    together.update(message)


def _content(message: Any) -> str:
    """Return the content of a wire message if it is a text. Equal messages have equal contents."""
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""


_Pairs: TypeAlias = set[tuple[str, str]]
"""Texts that were shortened, and the texts that are shown in their place."""


def unresolved(
    shown: Mapping[int, Message], edits: Mapping[int, Sequence[Shortening]]
) -> dict[int, str]:
    """Edited messages that cannot be restored from what is shown, each with the reason.

    Both are by the index that messages had before any of them was edited or left out.
    """
    faults = without_sources(shown, edits)
    for index, shortenings in edits.items():
        if index not in faults and (fault := next(filter(None, map(_fault, shortenings)), "")):
            faults[index] = fault
    return faults


def without_sources(
    shown: Mapping[int, Message], edits: Mapping[int, Sequence[Shortening]]
) -> dict[int, str]:
    """Edited messages that point to a text which is no longer shown, each with the reason."""

    @cache
    def texts(index: int) -> frozenset[str]:
        return frozenset(texts_in(shown[index])) if index in shown else frozenset()

    faults: dict[int, str] = {}
    for index, shortenings in edits.items():
        sources = (source for each in shortenings for source in each.sources)
        away = next((each for each in sources if each.text not in texts(each.message)), None)
        if away is not None:
            faults[index] = f"points to message {away.message}, which does not show what it did"
    return faults


def explains(before: Message, after: Message, shortenings: Sequence[Shortening]) -> bool:
    """Return True if two messages differ only in shortened texts of tool results."""
    pairs = {(each.original, each.shown) for each in shortenings}
    if replace(after, parts=()) != replace(before, parts=()):
        return False
    return len(before.parts) == len(after.parts) and all(
        was == now or (isinstance(was, ToolResult) and _is_shortened(was, now, pairs))
        for was, now in zip(before.parts, after.parts, strict=True)
    )


def texts_in(message: Message) -> Iterator[str]:
    """Yield every text of a message: its own, tool arguments and tool results."""
    for part in message.parts:
        match part:
            case Text(text):
                yield text
            case ToolCall(arguments=arguments):
                yield from (text for _, text in texts_within(arguments))
            case ToolResult(parts=inner):
                for each in inner:
                    if isinstance(each, Text):
                        yield each.text
                    elif isinstance(each, Data):
                        yield from (text for _, text in texts_within(each.value))


def _fault(shortening: Shortening) -> str:
    try:
        return "" if shortening.restore() == shortening.original else "restores something else"
    except RestoreError as error:
        return f"cannot be restored: {error}"


def _is_shortened(was: ToolResult, now: Any, pairs: _Pairs) -> bool:
    if not isinstance(now, ToolResult) or replace(now, parts=()) != replace(was, parts=()):
        return False
    return len(was.parts) == len(now.parts) and all(
        old == new or _is_shortened_content(old, new, pairs)
        for old, new in zip(was.parts, now.parts, strict=True)
    )


def _is_shortened_content(was: Any, now: Any, pairs: _Pairs) -> bool:
    match was, now:
        case Text(old), Text(new):
            return (old, new) in pairs and replace(now, text=old) == was
        case Data(old), Data(new):
            return _is_shortened_value(old, new, pairs) and replace(now, value=old) == was
    return False


def _is_shortened_value(old: Any, new: Any, pairs: _Pairs) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return old == new or (old, new) in pairs
    if isinstance(old, Mapping) and isinstance(new, Mapping) and list(old) == list(new):
        return all(_is_shortened_value(old[key], new[key], pairs) for key in old)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return all(_is_shortened_value(a, b, pairs) for a, b in zip(old, new, strict=True))
    return type(old) is type(new) and bool(old == new)
