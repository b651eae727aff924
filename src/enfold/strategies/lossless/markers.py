"""Markers: short texts that stand for content which is shown elsewhere in the view.

A marker names its target by what the model can see: the subject of the call (a path, a command),
with the tool and the end of the call's id where other calls have that subject, or the beginning of
a message. `find_markers` reads markers again, `locate` finds the content that one stands for, and
`expand` puts that content back into messages, for strategies that may remove the target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from enfold.encodings import SPARSE, is_numbered
from enfold.errors import InputError
from enfold.jsontext import Path, loads, texts_within
from enfold.messages import Message, ToolCall
from enfold.strategies.lossless.texts import ResultText, result_texts, texts_of_messages, with_texts

SUPERSEDED_LIST = "⟨ Superseded by a later list ⟩"
"""In place of a to-do list in the parameters of a call."""
_LONGEST_NAME = 28
_LONGEST_SUBJECT = 24
_LONGEST_QUOTE = 16
QUOTES = (8, 10, 12, 16, 20, 28)
"""The lengths of a quotation by which lines can be found, the shortest first."""
_SUBJECTS = ("file_path", "path", "command", "cmd", "pattern", "query", "url", "file", "name")
"""Arguments that tell the subject of a call, the best first."""
_SHORTEST_ID = 4
_ITS_CALL = "its call"
_WORDS = (_ITS_CALL, "above", "below")
"""Words that mean something else in a marker than the subject of a call."""
_BELOW = " below"
_MARKER = re.compile(
    r"⟨ (?:"
    r"(?P<whole>File content already provided (?:above|below)|Reference|Superseded"
    r"|Consolidated \d+ operations): see (?P<seen_in>[^⟨⟩\n]+)"
    r"|(?P<sign>[+-]?)lines? (?P<first>\d+)(?:-(?P<last>\d+))?"
    r"(?P<as> as(?: (?P<there>\d+)(?:-\d+)?)?)? (?:above|in (?P<lines_in>[^⟨⟩\n]+))"
    r"|(?P<size>\d+) (?P<size_sign>[+-]?)(?P<unit>lines?|characters) from "
    r'"(?P<quote>[^⟨⟩\n]*?)(?P<cut>…?)"(?: as)? (?:above|in (?P<sized_in>[^⟨⟩\n]+))'
    r") ⟩"
)
_REPEATED_LINE = "⟨ the line above "
"""The beginning of the marker with which an encoding replaces equal lines in a row."""
_DISTINCTION = re.compile(r" \((?:(?:call |…)(?P<id>[^()]+)|no\. (?P<number>\d+))\)$")


@dataclass(frozen=True, slots=True)
class Marker:
    """A marker in a text."""

    start: int
    stop: int
    name: str | None
    """The name of its target. None: the text that the marker is in."""
    fields: Mapping[str, str | None]

    @property
    def is_superseded(self) -> bool:
        """True if the content is nowhere in view: the target shows what came after it."""
        return self.fields["whole"] == "Superseded"


def find_markers(text: str) -> Iterator[Marker]:
    """Yield the markers of a text that point to content, in order."""
    if "⟨ " in text:
        for found in _MARKER.finditer(text):
            fields = found.groupdict()
            name = fields["seen_in"] or fields["lines_in"] or fields["sized_in"]
            if (fields["whole"] or "").endswith(_BELOW):
                name = f"{name}{_BELOW}"
            yield Marker(found.start(), found.end(), name, fields)


def has_marker(text: str) -> bool:
    """Return True if a text was shortened before, or looks like it."""
    return "⟨ " in text and (_REPEATED_LINE in text or _MARKER.search(text) is not None)


def reference(name: str) -> str:
    """Return the marker for a result that another result shows in full."""
    return f"⟨ Reference: see {name} ⟩"


def file_reference(name: str) -> str:
    """Return the marker for a file that is read elsewhere with the same content."""
    where = "below" if name.endswith(_BELOW) else "above"
    return f"⟨ File content already provided {where}: see {name.removesuffix(_BELOW)} ⟩"


def consolidated(operations: int, name: str) -> str:
    """Return the marker for one of several operations with the same outcome."""
    return f"⟨ Consolidated {operations} operations: see {name} ⟩"


def superseded(name: str) -> str:
    """Return the marker for state that a later result shows as it became."""
    return f"⟨ Superseded: see {name} ⟩"


def numbered_lines(first: int, there: int | None, size: int, place: str) -> str:
    """Return the marker for lines with numbers; `there` is the first number at the target."""
    here = _range(first, size)
    if there is None or there == first:
        return f"⟨ {here} as {place} ⟩"
    return f"⟨ {here} as {_range(there, size, name='')} {place} ⟩"


def lines(sign: str, there: int, size: int, place: str) -> str:
    """Return the marker for lines that have numbers only at the target."""
    return f"⟨ {_range(there, size, name=f'{sign}line')} {place} ⟩"


def bare_lines(sign: str, beginning: str, size: int, place: str, quote: int) -> str:
    """Return the marker for lines without numbers, by how they begin: a quotation that long."""
    name = f"{sign}line" if size == 1 else f"{sign}lines"
    return f"⟨ {size} {name} from {_quoted(beginning, quote)} {place} ⟩"


def characters(beginning: str, size: int, place: str, quote: int) -> str:
    """Return the marker for a part of a line, with a quotation that long."""
    return f"⟨ {size} characters from {_quoted(beginning, quote)} {place} ⟩"


class Names:
    """The names of the texts in a view, as markers use them."""

    def __init__(self, texts: Sequence[ResultText]) -> None:
        self._texts = texts
        by_call: dict[int, tuple[str, str]] = {}
        shared: dict[tuple[str, str], tuple[str, str]] = {}
        # The arguments and the results of a call share its names, and so do equal calls.
        found: list[tuple[str, str]] = []
        for text in texts:
            call = text.call
            if call is None:
                quoted = _quoted(text.text)
                found.append((quoted, quoted))
            else:
                names = by_call.get(id(call))
                if names is None:
                    names = _names(call)
                    names = by_call[id(call)] = shared.setdefault(names, names)
                found.append(names)
        self._bases = [base for base, _ in found]
        self._subjects = [subject for _, subject in found]
        self._same = _Places(self._bases)
        self._same_subject = _Places(self._subjects)

    def name(self, source: int, holder: int) -> str:
        """Return the name of a text for a marker in another text.

        It is unique among the texts on the same side of the holder, so that texts which are
        appended later do not make a name ambiguous that points back.
        """
        if self._is_same(source, holder):
            return _ITS_CALL
        base, subject = self._bases[source], self._subjects[source]
        if not self._others(self._same_subject.of(subject), source, holder):
            name = subject
        else:
            others = self._others(self._same.of(base), source, holder)
            name = base + self._distinction(source, others) if others else base
        return name if source < holder else f"{name}{_BELOW}"

    def _others(self, indexes: Sequence[int], source: int, holder: int) -> list[int]:
        """Return the texts of other calls that are on the same side of the holder."""
        return [
            index
            for index in indexes
            if (index < holder) == (source < holder)
            and not self._is_same(index, source)
            and not self._is_same(index, holder)
        ]

    def place(self, source: int, holder: int) -> str:
        """Return where a marker's lines are: above in the same text, or in another text."""
        return "above" if source == holder else f"in {self.name(source, holder)}"

    def targets(self, name: str, holder: int) -> list[int]:
        """Return the texts that a name may mean to a reader of the holder."""
        if name == _ITS_CALL:
            same = (i for i in range(len(self._texts)) if self._is_same(i, holder))
            return [index for index in same if not self._texts[index].is_result]
        is_below = name.endswith(_BELOW)
        name = name.removesuffix(_BELOW)
        distinction = _DISTINCTION.search(name)
        is_distinct = name not in self._same and name not in self._same_subject
        base = name[: distinction.start()] if distinction and is_distinct else name
        side = [
            index
            for index in sorted({*self._same.of(base), *self._same_subject.of(base)})
            if (index > holder) == is_below and not self._is_same(index, holder)
        ]
        if base == name or distinction is None:
            return side
        if distinction["id"]:
            return [index for index in side if self._id(index).endswith(distinction["id"])]
        return [index for index in side if self._number(index) == int(distinction["number"])]

    def _distinction(self, source: int, others: Sequence[int]) -> str:
        """Return what tells a text from others of the same name: its call's id, or its number."""
        id = self._id(source)
        for size in (_SHORTEST_ID, 2 * _SHORTEST_ID, len(id)):
            end = id[-size:]
            if end and not any(self._id(other).endswith(end) for other in others):
                return f" ({'…' if len(end) < len(id) else 'call '}{end})"
        return f" (no. {self._number(source)})"

    def _number(self, index: int) -> int:
        """Return the place of a text among those of its name, counted by calls from 1."""
        calls = {
            id(self._texts[each].call) if self._texts[each].call is not None else each
            for each in self._same.of(self._bases[index])
            if each < index and not self._is_same(each, index)
        }
        return len(calls) + 1

    def _is_same(self, one: int, two: int) -> bool:
        """Return True if two texts belong to one call, or are one text."""
        call = self._texts[one].call
        return one == two or (call is not None and call is self._texts[two].call)

    def _id(self, index: int) -> str:
        call = self._texts[index].call
        return "" if call is None else re.sub(r"[()⟨⟩\s]", "", call.id)


def pointed_at(texts: Sequence[ResultText]) -> set[int]:
    """Return the messages that markers in the view point to: they must stay as they are."""
    names: Names | None = None
    found: set[int] = set()
    for holder, text in enumerate(texts):
        if text.is_result and "⟨ " in text.text:
            for marker in find_markers(text.text):
                names = names or Names(texts)
                targets = names.targets(marker.name, holder) if marker.name else [holder]
                found.update(texts[index].message for index in targets)
    return found


def locate(marker: Marker, target: str) -> tuple[int, int] | None:
    """Return the characters of the target that a marker stands for; None if that is ambiguous."""
    fields = marker.fields
    if fields["whole"]:
        return (0, len(target))
    if fields["first"]:
        return _locate_numbers(fields, target)
    words = (fields["quote"] or "").split()
    if not words:
        return None
    # A quote has single blanks where the text has any, and ends in the middle of a word.
    pattern = re.compile(r"[\s⟨⟩]+".join(map(re.escape, words)))
    found = list(_first_two(pattern, target))
    if len(found) != 1:
        return None
    size = int(fields["size"] or 0)
    if fields["unit"] == "characters":
        start = len(target[: found[0]].rstrip(" \t"))
        return (start, start + size) if start == found[0] and start + size <= len(target) else None
    start = target.rfind("\n", 0, found[0]) + 1
    if target[start : found[0]].strip(" \t+-"):
        return None
    return _lines_from(target, start, size)


def _first_two(pattern: re.Pattern[str], text: str) -> Iterator[int]:
    for number, found in enumerate(pattern.finditer(text)):
        yield found.start()
        if number:
            return


def _locate_numbers(fields: Mapping[str, str | None], target: str) -> tuple[int, int] | None:
    first = int(fields["first"] or 0)
    size = int(fields["last"] or first) - first + 1
    there = int(fields["there"] or first)
    found: list[int] = []
    for above in range(SPARSE):
        pattern = re.compile(rf"^ *{there - above}[→\t|:-]", re.MULTILINE)
        found = list(_first_two(pattern, target))
        if len(found) == 1:
            return _lines_below(target, found[0], above, size)
        if found:
            return None
    if found or not fields["as"] or fields["there"]:
        return None
    # The target's lines have no numbers: they count from its first line.
    start = 0
    for _ in range(first - 1):
        start = target.find("\n", start) + 1
        if not start:
            return None
    return _lines_from(target, start, size)


def _lines_below(text: str, start: int, above: int, size: int) -> tuple[int, int] | None:
    """Return the lines `above` lines below a numbered one, if those between have no numbers."""
    if not above:
        return _lines_from(text, start, size)
    skipped = _lines_from(text, start, above + 1)
    between = "" if skipped is None else text[start : skipped[1]].partition("\n")[2]
    if skipped is None or "⟨ " in between or is_numbered(between):
        return None
    return _lines_from(text, text.rfind("\n", 0, skipped[1]) + 1, size)


def _lines_from(text: str, start: int, size: int) -> tuple[int, int] | None:
    end = start - 1
    for _ in range(size):
        if end >= len(text):
            return None
        newline = text.find("\n", end + 1)
        end = newline if newline >= 0 else len(text)
    return start, end


def expand(messages: Sequence[Message]) -> dict[int, tuple[Message, frozenset[int]]]:
    """Return the messages that hold markers, with the content put back, and what they point to.

    Where the content cannot be found, the marker says that it is no longer shown. The ledger of
    the condensation that wrote the marker still restores it.
    """
    if not any(has_marker(text) for message in messages for text in result_texts(message)):
        return {}
    texts = texts_of_messages(messages)
    holders = [
        index for index, each in enumerate(texts) if each.is_result and has_marker(each.text)
    ]
    names = Names(texts)
    changed: dict[int, dict[tuple[int, int, Path], str]] = {}
    pointed: dict[int, set[int]] = {}
    for holder in holders:
        text, targets = _expanded(texts, holder, names)
        if targets:
            where = texts[holder]
            changed.setdefault(where.message, {})[(where.part, where.inner, where.path)] = text
            pointed.setdefault(where.message, set()).update(targets)
    return {
        index: (with_texts(messages[index], new), frozenset(pointed[index]))
        for index, new in changed.items()
    }


def _expanded(texts: Sequence[ResultText], holder: int, names: Names) -> tuple[str, set[int]]:
    """Return a text with the content of its markers, and the messages that those point to."""
    text = texts[holder].text
    pieces: list[str] = []
    pointed: set[int] = set()
    at = 0
    for marker in find_markers(text):
        targets = names.targets(marker.name, holder) if marker.name else ()
        if not targets:
            continue
        pointed.update(texts[index].message for index in targets)
        pieces += (text[at : marker.start], _content(marker, [texts[i].text for i in targets]))
        at = marker.stop
    return "".join([*pieces, text[at:]]), pointed


def _content(marker: Marker, targets: Sequence[str]) -> str:
    """Return what a marker stands for, or a note that it is no longer shown."""
    if not marker.is_superseded:
        readings = (reading for target in targets for reading in _readings(target))
        found = [(place, target) for target in readings if (place := locate(marker, target))]
        if len(found) == 1:
            (start, stop), target = found[0]
            return _in_form(marker, target[start:stop])
    size = marker.fields["size"] and f"{marker.fields['size']} {marker.fields['unit']}"
    what = "Superseded result" if marker.is_superseded else size or "Repeated content"
    return f"⟨ {what} no longer shown: was in {marker.name} ⟩"


def _readings(target: str) -> Iterator[str]:
    """Yield the text, and the texts inside it if it is JSON, where their lines are escaped."""
    yield target
    if target.startswith(("{", "[")):
        try:
            value = loads(target)
        except InputError:
            return
        yield from (text for _, text in texts_within(value))


def _in_form(marker: Marker, piece: str) -> str:
    """Return a piece of the target with the numbers or signs that the lines had at the marker."""
    fields = marker.fields
    if fields["whole"] or fields["unit"] == "characters":
        return piece
    found = piece.split("\n")
    if not fields["first"]:
        return "\n".join(f"{fields['size_sign']}{line}" for line in found)
    first = int(fields["first"])
    there = int(fields["there"] or first)
    bare = [re.sub(rf"^ *{number}[→\t|:-]", "", line) for number, line in enumerate(found, there)]
    if fields["as"]:
        return "\n".join(f"{number}\t{line}" for number, line in enumerate(bare, first))
    return "\n".join(f"{fields['sign']}{line}" for line in bare)


def describe(call: ToolCall) -> str:
    """Return the tool and the subject of a call on one short line."""
    return _names(call)[0]


def _names(call: ToolCall) -> tuple[str, str]:
    """Return the tool with the subject of a call, and the subject alone if that tells enough."""
    subject = _on_one_line(_subject(call.arguments))
    base = _shortened(_on_one_line(f"{call.name} {subject}"))
    is_clear = subject.isascii() and subject[:1].isalnum() and subject not in _WORDS
    return base, _shortened_subject(subject) if is_clear or "/" in subject else base


class _Places:
    """The places of each name. Most names have one, which needs no list of its own."""

    def __init__(self, names: Sequence[str]) -> None:
        self._first: dict[str, int] = {}
        self._all: dict[str, list[int]] = {}
        for index, name in enumerate(names):
            first = self._first.setdefault(name, index)
            if first != index:
                self._all.setdefault(name, [first]).append(index)

    def __contains__(self, name: str) -> bool:
        return name in self._first

    def of(self, name: str) -> Sequence[int]:
        """Return the places of a name, in order."""
        if name in self._all:
            return self._all[name]
        return (self._first[name],) if name in self._first else ()


def _quoted(beginning: str, longest: int = _LONGEST_QUOTE) -> str:
    words = _on_one_line(beginning.lstrip()[: 4 * longest])
    return f'"{words}"' if len(words) <= longest else f'"{words[:longest].rstrip()}…"'


def _on_one_line(text: str) -> str:
    """Return the words without what would end a line, or the marker."""
    return " ".join(re.sub(r"[⟨⟩]", " ", text).split())


def _subject(arguments: str | Mapping[str, Any]) -> str:
    value: Any = arguments
    if isinstance(arguments, str):
        try:
            value = loads(arguments)
        except InputError:
            return arguments
    if not isinstance(value, Mapping):
        return str(value)
    texts = {key: item for key, item in value.items() if isinstance(item, str) and item}
    best = next((texts[key] for key in _SUBJECTS if key in texts), None)
    return best if best is not None else next(iter(texts.values()), "")


def _shortened(text: str) -> str:
    """Return at most a few words: of a path its end, of a command its beginning."""
    if len(text) <= _LONGEST_NAME:
        return text
    name, _, rest = text.partition(" ")
    if "/" in rest and " " not in rest:
        return f"{name} {_end_of_path(rest)}"
    return f"{text[: _LONGEST_NAME - 1].rstrip()}…"


def _shortened_subject(subject: str) -> str:
    if len(subject) <= _LONGEST_SUBJECT:
        return subject
    if "/" in subject and " " not in subject:
        return _end_of_path(subject)
    return f"{subject[: _LONGEST_SUBJECT - 1].rstrip()}…"


def _end_of_path(path: str) -> str:
    return f"…/{path.rstrip('/').rpartition('/')[2][-_LONGEST_NAME:]}"


def _range(first: int, size: int, *, name: str = "line") -> str:
    if size == 1:
        return f"{name} {first}".strip()
    return f"{name}s {first}-{first + size - 1}" if name else f"{first}-{first + size - 1}"
