"""Texts: all that a view shows, text by text, with what may be done to each.

Only what tools returned is ever shortened. Everything that was said, and what calls were given, may
be pointed to.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import accumulate, pairwise
from operator import add
from typing import Any

from enfold.condensation import Plan
from enfold.encodings import bodies, is_numbered, runs
from enfold.errors import InputError
from enfold.jsontext import Path, loads, texts_within, with_text_at
from enfold.ledger import (
    BARE,
    ITSELF,
    CopiedPiece,
    Form,
    Piece,
    PieceSource,
    Recipe,
    Shortening,
    StoredPiece,
    VisiblePiece,
    digest,
)
from enfold.messages import Data, Message, Part, ResultPart, Text, ToolCall, ToolResult
from enfold.tokens import Tokenizer

SHORTEST = 40
"""Characters from which on a text is worth pointing to: a marker takes as many."""
_MARKER = re.compile(r"⟨ [^⟩\n]*\b(?:message #\d|above)[^⟩\n]* ⟩")
_POINTS_AT = re.compile(r"⟨ [^⟩]*\bmessage #(\d+)[^⟩]* ⟩")


class EditRight(IntEnum):
    """The edits that are allowed on a text."""

    NOTHING = 0
    REFERENCE = 1
    """Point to others for what it repeats; all it says stays in view."""
    ANYTHING = 2
    """Also write it in another way, or take it out of view."""


@dataclass(frozen=True, slots=True)
class ResultText:
    """A text in view."""

    message: int
    text: str
    right: EditRight = EditRight.NOTHING
    part: int = 0
    inner: int = 0
    path: Path = ()
    """Inside structured output: the keys that lead to the text."""
    call: ToolCall | None = None
    """The call that it was given to, or that it answers."""
    is_result: bool = False
    """Whether a tool returned it."""
    is_error: bool = False


def texts_of(plan: Plan) -> list[ResultText]:
    """The texts of the view, in order: all results, and of the rest what is long enough."""
    rights = _rights(plan)
    calls: dict[str, ToolCall] = {}
    found: list[ResultText] = []
    for index, message in enumerate(plan.messages):
        for number, part in enumerate(message.parts):
            match part:
                case Text(text) if len(text) >= SHORTEST:
                    found.append(ResultText(index, text, part=number))
                case ToolCall(id):
                    calls[id] = part
                    texts = texts_within(part.arguments)
                    long = (text for _, text in texts if len(text) >= SHORTEST)
                    found += (ResultText(index, text, call=part) for text in long)
                case ToolResult(call_id):
                    found += _result_texts(index, number, part, calls.get(call_id), rights[index])
    return found


def has_marker(text: str) -> bool:
    """Return True if a text was shortened before, or looks like it."""
    return "⟨ " in text and _MARKER.search(text) is not None


def pointed_at(texts: list[ResultText], number_of: Callable[[int], int]) -> set[int]:
    """Messages that markers in the view point to already: they must stay as they are."""
    numbers = {
        int(found[1])
        for shown in texts
        if shown.is_result and "⟨ " in shown.text
        for found in _POINTS_AT.finditer(shown.text)
    }
    return {shown.message for shown in texts if number_of(shown.message) in numbers}


def with_texts(message: Message, changed: Mapping[tuple[int, int, Path], str]) -> Message:
    """The message with other texts in its results."""
    parts: list[Part] = list(message.parts)
    for (number, inner, path), text in changed.items():
        parts[number] = _with_text(parts[number], inner, path, text)
    return replace(message, parts=tuple(parts))


def _with_text(part: Part, inner: int, path: Path, text: str) -> Part:
    if not isinstance(part, ToolResult):
        return part
    contents: list[ResultPart] = list(part.parts)
    content = contents[inner]
    match content:
        case Text():
            contents[inner] = replace(content, text=text)
        case Data(value):
            contents[inner] = replace(content, value=with_text_at(value, path, text))
    return replace(part, parts=tuple(contents))


def _rights(plan: Plan) -> list[EditRight]:
    """Return the edits that are allowed on the results of each message."""
    rights = [EditRight.REFERENCE] * len(plan.messages)
    for index in plan.editable:
        rights[index] = EditRight.ANYTHING
    for index in plan.protected:
        rights[index] = EditRight.NOTHING
    for index, message in enumerate(plan.messages):
        if message.role == "assistant":
            rights[index] = EditRight.NOTHING
    return rights


def _result_texts(
    index: int, number: int, result: ToolResult, call: ToolCall | None, right: EditRight
) -> Iterator[ResultText]:
    for inner, content in enumerate(result.parts):
        match content:
            case Text(text):
                texts: Iterable[tuple[Path, str]] = (((), text),)
            case Data(value):
                texts = texts_within(value)
            case _:
                continue
        for path, text in texts:
            yield ResultText(
                index,
                text,
                right,
                number,
                inner,
                path,
                call,
                is_result=True,
                is_error=result.is_error,
            )


JOINED, LINKED, ANCHOR, PIECE = 1, 2, 4, 8
"""Flags of a unit: stands next to the one before it; continues it, in the same form; is worth
looking for; is not a whole line."""

_OF_PIECE = 0x2545F4914F6CDD1D
"""What keys of pieces are changed by, so that they are not taken for those of lines."""
_LONG = 300
"""Characters from which on a line is divided."""
_SHORTEST_ANCHOR = 6
_ESCAPED_LINE = re.compile(r"([^\\]*(?:\\[^n][^\\]*)*)(\\n|$)")
_QUOTE = re.compile(r"\\.|\"")
"""An escape, or a quote that is none: it begins or ends a string."""
_PIECE = re.compile(r".{16,}?[\s,;{}()\[\]<>=&/0aZ]|.+", re.DOTALL)
"""Where a long line is divided depends only on what stands there, so that the same text inside two
lines is divided alike; at the latest after a few pieces."""
_PATCH = ("@@ ", "*** Begin Patch")
_SIGNS = "+- "
_FILE_NAMES = ("+++ ", "--- ")
_UNITS_MARKER = re.compile(r"⟨ .* ⟩")


@dataclass(slots=True)
class Units:
    """The units of one text, each a range of it, a key to compare by, a form and flags."""

    starts: array[int] = field(default_factory=lambda: array("I"))
    stops: array[int] = field(default_factory=lambda: array("I"))
    keys: array[int] = field(default_factory=lambda: array("q"))
    """What is the same for units that say the same, whatever their forms add."""
    forms: array[int] = field(default_factory=lambda: array("H"))
    """Each unit's form: its place in `kinds`."""
    flags: bytearray = field(default_factory=bytearray)
    kinds: list[Form] = field(default_factory=lambda: [BARE])

    def __len__(self) -> int:
        return len(self.keys)

    def number_of(self, form: Form) -> int:
        """The form's place in `kinds`."""
        if form not in self.kinds:
            self.kinds.append(form)
        return self.kinds.index(form)


def units_of(text: str) -> Units:
    """The text, divided."""
    units = Units()
    lines = text.split("\n")
    sizes = list(map(len, lines))
    if max(sizes) <= _LONG:
        _add_lines(units, lines, sizes, 0)
    else:
        _add_mixed(units, lines, sizes)
    if "⟨ " in text:
        _cut_out_markers(units, text)
    units.flags[0] &= ~(JOINED | LINKED)
    return units


def _add_mixed(units: Units, lines: list[str], sizes: list[int]) -> None:
    """Lines, and pieces of those that are long."""
    at = first = offset = 0
    for index, size in enumerate(sizes):
        if size > _LONG:
            _add_lines(units, lines[first:index], sizes[first:index], at)
            _add_long(units, lines[index], offset)
            first, at = index + 1, offset + size + 1
        offset += size + 1
    _add_lines(units, lines[first:], sizes[first:], at)


def _add_lines(units: Units, lines: list[str], sizes: list[int], at: int) -> None:
    """Lines that stand one after the other from a place in the text on."""
    if not lines:
        return
    bare, forms, flags = _bare(units, lines)
    starts = array("I", accumulate(sizes[:-1], lambda place, size: place + size + 1, initial=at))
    units.starts += starts
    units.stops.extend(map(add, starts, sizes))
    units.keys.extend(map(hash, bare))
    units.forms += forms
    units.flags += flags


def _bare(units: Units, lines: list[str]) -> tuple[list[str], array[int], bytearray]:
    """The lines without numbers and signs, the form of each, and its flags."""
    bare = lines
    forms = array("H", bytes(2 * len(lines)))
    text = "\n".join(lines)
    breaks: list[int] = []
    if is_numbered(text):
        bare = list(bare)
        for run in runs(lines):
            bare[run.start : run.stop] = bodies(lines, run)
            form = units.number_of(Form(separator=run.separator, width=run.width))
            forms[run.start : run.stop] = array("H", [form]) * (run.stop - run.start)
            breaks += (run.start, run.stop)
    if any(sign in text for sign in _PATCH):
        bare = _take_off_signs(units, bare, forms)
        breaks += (at for at, (one, two) in enumerate(pairwise(forms), 1) if one != two)
    joined = JOINED | LINKED
    flags = bytearray(
        [
            joined | ANCHOR if len(body) >= _SHORTEST_ANCHOR and not body.isspace() else joined
            for body in bare
        ]
    )
    flags[0] &= ~LINKED
    for at in breaks:
        if at < len(flags):
            flags[at] &= ~LINKED
    return bare, forms, flags


def _take_off_signs(units: Units, lines: list[str], forms: array[int]) -> list[str]:
    """Lines of a patch without the sign before them; the forms of the others stay."""
    signs = {sign: units.number_of(Form(sign=sign)) for sign in _SIGNS}
    bare = list(lines)
    for at, line in enumerate(lines):
        if not forms[at] and line[:1] in signs and not line.startswith(_FILE_NAMES):
            bare[at] = line[1:]
            forms[at] = signs[line[0]]
    return bare


def _add_long(units: Units, line: str, offset: int) -> None:
    if line.count("\\n") > 1 and _add_escaped(units, line, offset):
        return
    for found in _PIECE.finditer(line):
        units.starts.append(offset + found.start())
        units.stops.append(offset + found.end())
        units.keys.append(hash(found[0]) ^ _OF_PIECE)
        units.forms.append(0)
        units.flags.append(PIECE | ANCHOR | JOINED | (LINKED if found.start() else 0))


def _add_escaped(units: Units, line: str, offset: int) -> bool:
    """Add the escaped lines inside a long line; the text around them is added as pieces."""
    spans = list(_escaped_spans(line))
    texts = [line[start:stop] for start, stop in spans]
    outer = Form(escaped=True, is_ascii=line.isascii() and "\\u" in line)
    inner = [_unescaped(text, outer) for text in texts]
    if sum(text is not None for text in inner) <= 1:
        return False
    bare, forms, flags = _bare(units, [text or "" for text in inner])
    for at, (start, stop) in enumerate(spans):
        units.starts.append(offset + start)
        units.stops.append(offset + stop)
        if inner[at] is None:
            units.keys.append(hash(texts[at]) ^ _OF_PIECE)
            units.forms.append(0)
            is_anchor = len(texts[at]) >= _SHORTEST_ANCHOR
            units.flags.append(PIECE | JOINED | (ANCHOR if is_anchor else 0))
        else:
            form = replace(units.kinds[forms[at]], escaped=True, is_ascii=outer.is_ascii)
            follows = at > 0 and inner[at - 1] is not None
            units.keys.append(hash(bare[at]))
            units.forms.append(units.number_of(form))
            units.flags.append(flags[at] if follows else flags[at] & ~LINKED)
    return True


def _escaped_spans(line: str) -> Iterator[tuple[int, int]]:
    """Yield the spans between escaped line ends, split at the quotes of strings."""
    for found in _ESCAPED_LINE.finditer(line):
        start, stop = found.span(1)
        quotes = [q.start() for q in _QUOTE.finditer(line, start, stop) if q[0] == '"']
        if not quotes:
            if found[0]:
                yield start, stop
            continue
        first = quotes[0] if start else 0
        last = quotes[-1] + 1 if found[2] else stop
        yield from ((a, b) for a, b in ((start, first), (first, last), (last, stop)) if a < b)


def _unescaped(text: str, form: Form) -> str | None:
    """The line that an escaped one stands for, if escaping it gives the same again."""
    if "\\" not in text and '"' not in text:
        return text if text.isascii() or not form.is_ascii else None
    try:
        line = json.loads(f'"{text}"')
    except ValueError:
        return None
    return line if isinstance(line, str) and form.text([line]) == text else None


def _cut_out_markers(units: Units, text: str) -> None:
    """A marker is no content: nothing may be matched with it or across it."""
    for found in _UNITS_MARKER.finditer(text):
        at = bisect_right(units.stops, found.start())
        while at < len(units) and units.starts[at] < found.end():
            units.flags[at] = 0
            at += 1
        if at < len(units):
            units.flags[at] &= ~(JOINED | LINKED)


@dataclass(frozen=True, slots=True)
class StepContext:
    """The values that every step uses."""

    tokenizer: Tokenizer
    least: int
    """Tokens that a marker must save."""
    numbers: Sequence[int]
    """The number of every message in the view."""
    keep_last: bool = False
    """Whether the last of several equal texts stays in view, and not the first."""

    def pays(self, text: str, marker: str) -> bool:
        """Return True if a marker in place of the text saves enough tokens."""
        tokens, cost = self.tokenizer.count_many((text, marker))
        return tokens - cost >= self.least


@dataclass(frozen=True, slots=True)
class Replacement:
    """Characters `[start, stop)` of a draft, replaced by a marker."""

    start: int
    stop: int
    marker: str
    source: int | None
    """The draft that shows what was there. None: nothing in view does."""
    at: tuple[int, int] = (0, 0)
    """The characters of the source that say it."""
    of: Form = BARE
    to: Form = BARE
    first: int = 0


@dataclass(slots=True)
class TextDraft:
    """One text in view."""

    was: ResultText
    text: str
    """What holes are cut into: the original, or another encoding of it."""
    right: EditRight
    encodings: list[tuple[str, Any]] = field(default_factory=list)
    holes: list[Replacement] = field(default_factory=list)
    is_whole: bool = False
    """Whether others point to all of it, so that it must be shown in full."""
    is_named: bool = False
    """Whether others are superseded by it, so that it must be shown."""

    @classmethod
    def of(cls, shown: ResultText) -> TextDraft:
        """A draft of which nothing is taken out yet."""
        return cls(shown, shown.text, shown.right)

    def replace_by(self, marker: str, source: int | None, at: tuple[int, int] = (0, 0)) -> None:
        """Put a marker in place of all of it; a source shows it at those characters."""
        self.holes.append(Replacement(0, len(self.text), marker, source, at))

    @property
    def is_changed(self) -> bool:
        """True if the shown text differs from the original."""
        return bool(self.holes or self.encodings)

    @property
    def is_replaced(self) -> bool:
        """True if a marker replaces all of it."""
        return bool(self.holes) and self.holes[0].stop - self.holes[0].start == len(self.text)

    def shown(self) -> str:
        """The text with markers in its holes."""
        if not self.holes:
            return self.text
        pieces: list[str] = []
        at = 0
        for hole in self.holes:
            pieces += (self.text[at : hole.start], hole.marker)
            at = hole.stop
        return "".join([*pieces, self.text[at:]])

    def shown_at(self, place: int) -> int:
        """Where a character of the text that is in no hole is shown."""
        before = self.holes[: bisect_right(self.holes, place, key=lambda hole: hole.start)]
        return place - sum(hole.stop - hole.start - len(hole.marker) for hole in before)


def shortening(drafts: Sequence[TextDraft], index: int, shown: Sequence[str]) -> Shortening:
    """How a draft's original comes back; `shown` are the texts that all drafts come to."""
    draft = drafts[index]
    sources: dict[int, int] = {}
    pieces: list[Piece] = []
    at = place = 0
    for hole in draft.holes:
        if hole.start > at:
            pieces.append(VisiblePiece(place, place + hole.start - at))
        place += hole.start - at + len(hole.marker)
        at = hole.stop
        pieces.append(_filling(drafts, index, hole, sources))
    if at < len(draft.text):
        pieces.append(VisiblePiece(place, place + len(draft.text) - at))
    recipe = Recipe(tuple(pieces), digest(draft.was.text), tuple(draft.encodings))
    used = tuple(PieceSource(drafts[source].was.message, shown[source]) for source in sources)
    return Shortening(draft.was.text, shown[index], recipe, used)


def _filling(
    drafts: Sequence[TextDraft], index: int, hole: Replacement, sources: dict[int, int]
) -> Piece:
    """Return the piece that restores a replacement; sources are numbered in order of use."""
    if hole.source is None:
        return StoredPiece(drafts[index].text[hole.start : hole.stop])
    source = drafts[hole.source]
    first, last = hole.at
    start = source.shown_at(first)
    number = ITSELF if hole.source == index else sources.setdefault(hole.source, len(sources))
    return CopiedPiece(number, start, start + last - first, hole.of, hole.to, hole.first)


_LONGEST = 48
_MARKERS_QUOTE = 20
_TELLING = ("file_path", "path", "command", "cmd", "pattern", "query", "url", "file", "name")
"""Arguments that say what a call was about, the best first."""


def reference(number: int, description: str) -> str:
    """For a result that another message shows in full."""
    return f"⟨ Reference: See message #{number} for {description} ⟩"


def file_reference(number: int, description: str, *, above: bool) -> str:
    """For a file that was read before, or is read again later."""
    where = "above" if above else "below"
    return f"⟨ File content already provided {where}: see message #{number} for {description} ⟩"


def consolidated(operations: int, number: int, description: str) -> str:
    """For one of several operations with the same outcome."""
    return f"⟨ Consolidated {operations} operations: {description}, see message #{number} ⟩"


def superseded(number: int, description: str) -> str:
    """For state that a later message shows as it became."""
    return f"⟨ Superseded by message #{number}: {description} ⟩"


def numbered_lines(first: int, there: int | None, size: int, place: str) -> str:
    """For lines with numbers; `there` is the number that the first has elsewhere, if it has one."""
    wanted = _range(first, size)
    if there is None or there == first:
        return f"⟨ {wanted} as {place} ⟩"
    return f"⟨ {wanted} as {_range(there, size, name='')} {place} ⟩"


def lines(sign: str, there: int, size: int, place: str) -> str:
    """For lines without numbers that have numbers elsewhere; a patch's sign says what they are."""
    return f"⟨ {_range(there, size, name=f'{sign}line')} {place} ⟩"


def bare_lines(sign: str, beginning: str, size: int, place: str) -> str:
    """For lines that have numbers nowhere: how they begin tells where they are."""
    name = f"{sign}line" if size == 1 else f"{sign}lines"
    return f"⟨ {size} {name} from {_quoted(beginning)} as {place} ⟩"


def characters(beginning: str, size: int, place: str) -> str:
    """For a part of a line."""
    return f"⟨ {size} characters from {_quoted(beginning)} as {place} ⟩"


def describe(call: ToolCall | None) -> str:
    """Return the subject of a call on one short line."""
    if call is None:
        return "its result"
    return _shortened(_on_one_line(f"{call.name} {_telling(call.arguments)}"))


def _quoted(beginning: str) -> str:
    words = _on_one_line(beginning.lstrip()[: 4 * _MARKERS_QUOTE])
    return f'"{words}"' if len(words) <= _MARKERS_QUOTE else f'"{words[:_MARKERS_QUOTE].rstrip()}…"'


def _on_one_line(text: str) -> str:
    """Words without what would end a line, or the marker."""
    return " ".join(re.sub(r"[⟨⟩]", " ", text).split())


def _telling(arguments: str | Mapping[str, Any]) -> str:
    value: Any = arguments
    if isinstance(arguments, str):
        try:
            value = loads(arguments)
        except InputError:
            return arguments
    if not isinstance(value, Mapping):
        return str(value)
    texts = {key: item for key, item in value.items() if isinstance(item, str) and item}
    best = next((texts[key] for key in _TELLING if key in texts), None)
    return best if best is not None else next(iter(texts.values()), "")


def _shortened(text: str) -> str:
    """At most a few words: of a path its end, of a command its beginning."""
    if len(text) <= _LONGEST:
        return text
    name, _, rest = text.partition(" ")
    if "/" in rest and " " not in rest:
        end = rest[-(_LONGEST - len(name) - 3) :]
        return f"{name} …/{end.partition('/')[2] or end}"
    return f"{text[: _LONGEST - 1].rstrip()}…"


def _range(first: int, size: int, *, name: str = "line") -> str:
    if size == 1:
        return f"{name} {first}".strip()
    return f"{name}s {first}-{first + size - 1}" if name else f"{first}-{first + size - 1}"
