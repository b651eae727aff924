"""Recipes: how a text that was shortened becomes what it was.

A shortened text says only what no other text in view says; for the rest it has markers. Its recipe
lists, in order, the pieces of which the original is made: ranges of the shortened text itself,
ranges of other texts in view, and texts set aside. Restoring follows the recipe and never reads a
marker, so it does not matter what a text looks like. A digest of the original proves the result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

from enfold.encodings import decode
from enfold.encodings.numbering import prefix
from enfold.errors import RestoreError


@dataclass(frozen=True, slots=True)
class Form:
    """How lines are written: bare, behind a sign, behind their numbers, or escaped as in JSON."""

    sign: str = ""
    """What stands before every line, as `+` in a patch."""
    separator: str = ""
    """What stands between a line's number and the line. Empty: lines have no numbers."""
    width: int = 0
    """How wide numbers are, with the blanks before them. 0: as wide as their digits."""
    escaped: bool = False
    """Whether the lines are inside a JSON string."""
    is_ascii: bool = False
    """Whether that string escapes all that is not ASCII."""

    def bare(self, text: str) -> list[str]:
        """The lines of a text in this form, without what the form adds."""
        lines = (json.loads(f'"{text}"') if self.escaped else text).split("\n")
        if self.separator:
            return [line.split(self.separator, 1)[1] for line in lines]
        return [line[len(self.sign) :] for line in lines] if self.sign else lines

    def text(self, lines: Sequence[str], first: int = 0) -> str:
        """The lines in this form; `first` is the number of the first of them."""
        if self.separator:
            numbered = enumerate(lines, first)
            lines = [prefix(n, self.width, self.separator) + line for n, line in numbered]
        elif self.sign:
            lines = [self.sign + line for line in lines]
        text = "\n".join(lines)
        return json.dumps(text, ensure_ascii=self.is_ascii)[1:-1] if self.escaped else text


BARE = Form()


@dataclass(frozen=True, slots=True)
class Own:
    """A range of the shortened text itself."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Copy:
    """A range of a text in view, whose lines may be in another form."""

    source: int
    """Which of the recipe's sources; `ITSELF` is the shortened text."""
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
class Aside:
    """A text that is nowhere in view."""

    text: str


Piece: TypeAlias = Own | Copy | Aside
ITSELF = -1


@dataclass(frozen=True, slots=True)
class Recipe:
    """The pieces of the original, the encodings to undo after joining them, and its digest."""

    pieces: tuple[Piece, ...]
    digest: str
    encodings: tuple[tuple[str, Any], ...] = ()
    """Name and what decoding needs, in the order in which they were applied."""

    def follow(self, shown: str, sources: Sequence[str]) -> str:
        """The original; `RestoreError` if what comes out is something else."""
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
        return not self.encodings and not any(isinstance(piece, Aside) for piece in self.pieces)

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
class Source:
    """A text in view that others are restored from."""

    message: int
    """The index of the message that shows it."""
    text: str


@dataclass(frozen=True, slots=True)
class Shortening:
    """A text, what is shown in its place, and how it comes back."""

    original: str
    shown: str
    recipe: Recipe
    sources: tuple[Source, ...] = ()

    def restore(self) -> str:
        """The original, from what is shown."""
        return self.recipe.follow(self.shown, [source.text for source in self.sources])


def digest(text: str) -> str:
    """What tells a text from any other."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _take(piece: Piece, shown: str, sources: Sequence[str]) -> str:
    if isinstance(piece, Own):
        return shown[piece.start : piece.stop]
    if isinstance(piece, Aside):
        return piece.text
    return piece.take(shown if piece.source == ITSELF else sources[piece.source])


def _piece_as_json(piece: Piece) -> Any:
    """A range of its own as two numbers, a text set aside as a text, a copy as an object."""
    if isinstance(piece, Own):
        return [piece.start, piece.stop]
    if isinstance(piece, Aside):
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
        return Aside(value)
    if isinstance(value, Mapping):
        start, stop = value["at"]
        return Copy(
            int(value["from"]),
            int(start),
            int(stop),
            Form(**value.get("of", {})),
            Form(**value.get("to", {})),
            int(value.get("first", 0)),
        )
    start, stop = value
    return Own(int(start), int(stop))


def _form_as_json(form: Form) -> dict[str, Any]:
    fields = ("sign", "separator", "width", "escaped", "is_ascii")
    return {name: getattr(form, name) for name in fields if getattr(form, name)}
