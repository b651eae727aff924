"""Lines: items of several words, or known by the words around them.

Most lines hold none, and a look for a telling piece of text is much faster than an expression, so
each expression only reads the lines that hold such a piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from enfold.receipt import patterns
from enfold.receipt.chunks import LONGEST
from enfold.receipt.patterns import Class

_HALVES_OF_A_DAY = (" am", " pm", " a.m", " p.m", " AM", " PM")
_FAULTS = ("xit ", "xited ", "tatus", "HTTP", "rrno", "rror code")
_DAYS_OF_A_MONTH = range(1, 32)
_LONGEST_MESSAGE = 80
_COMMAND_LENGTHS = range(3, LONGEST + 1)


@dataclass(frozen=True, slots=True)
class Lines:
    """Distinct lines of a text."""

    text: str
    words: AbstractSet[str]
    """All that stands between blanks and brackets in it."""

    def with_any(self, *pieces: str) -> str:
        """The lines that hold one of the pieces, as one text."""
        text = self.text
        found: dict[int, int] = {}
        for piece in pieces:
            at = text.find(piece)
            while at >= 0:
                end = text.find("\n", at)
                end = len(text) if end < 0 else end
                found[text.rfind("\n", 0, at) + 1] = end
                at = text.find(piece, end)
        return "\n".join(text[start:end] for start, end in sorted(found.items()))


def in_lines(lines: Lines) -> Iterator[tuple[Class, str]]:
    """The items of several words."""
    for kind, find in _FINDERS:
        for item in find(lines):
            yield kind, item


def commands(texts: Iterable[str]) -> Iterator[str]:
    """The first line of each command of several words; what follows it is input."""
    for text in texts:
        line = text.strip().partition("\n")[0].strip()
        if len(line) in _COMMAND_LENGTHS and " " in line:
            yield line


def _quantities(lines: Lines) -> Iterator[str]:
    text = lines.text
    yield from patterns.MONEY.findall(text)
    for found in patterns.QUANTITY.finditer(text):
        if found[1] in patterns.UNIT_WORDS and _begins_anew(text, found.start()):
            yield found[0]
    if text.isascii():
        return
    other = "\n".join(line for line in text.split("\n") if not line.isascii())
    for found in patterns.COUNTED.finditer(other):
        if _begins_anew(other, found.start(), letters=True):
            yield found[0]


def _days(lines: Lines) -> Iterator[str]:
    text = lines.text
    yield from patterns.MONTH_FIRST.findall(text)
    for found in patterns.DAY_FIRST.finditer(text):
        is_day = found[2] in patterns.MONTHS and int(found[1]) in _DAYS_OF_A_MONTH
        if is_day and _begins_anew(text, found.start()):
            yield found[0]
    yield from patterns.HOUR.findall(lines.with_any(*_HALVES_OF_A_DAY))
    yield from patterns.UNSPACED_DAY.findall(lines.with_any("年", "月"))


def _begins_anew(text: str, start: int, *, letters: bool = False) -> bool:
    """Whether what begins there is not the rest of something else.

    With `letters`, one of a script without blanks may stand before it.
    """
    before = text[start - 1] if start else " "
    if letters:
        return not (before.isascii() and (before.isalnum() or before in "._-"))
    return not (before.isalnum() or before in "._-")


def _faults(lines: Lines) -> Iterator[str]:
    """Codes with the word that says what they are, and messages with the error's name."""
    yield from patterns.EXIT.findall(lines.with_any(*_FAULTS))
    text = lines.with_any("Error: ", "Exception: ")
    for found in patterns.FAULT.finditer(text):
        start, end = found.span()
        while start and (text[start - 1].isalnum() or text[start - 1] in "._"):
            start -= 1
        if found.end(1) - found.start(1) > _LONGEST_MESSAGE:
            end = text.rfind(" ", found.start(1), end)
        message = text[start : max(end, start)].rstrip(" .,:;'`-(")
        names_one = text[start].isupper() or "." in text[start : found.start()]
        if names_one and found.start(1) - start < len(message) <= LONGEST:
            yield message


def _names(lines: Lines) -> Iterator[str]:
    text = lines.text
    for found in patterns.NAMES.finditer(text):
        name = _without_opener(found[0])
        if _stands_alone(text, found.start()) and _is_name(name, lines.words):
            yield name
    text = lines.with_any(" @")
    for handle in patterns.HANDLE.finditer(text):
        before = text[max(0, handle.start() - 2) : handle.start()]
        is_tag = handle[0][1:] in patterns.TAGS
        if before.endswith(" ") and before[0] not in "*\n " and not is_tag:
            yield handle[0]


def _stands_alone(text: str, start: int) -> bool:
    before = text[start - 1] if start else " "
    return not (before.isalnum() or before in "_./#@&-")


def _without_opener(words: str) -> str:
    """The words without one that a sentence begins with."""
    first, _, rest = words.partition(" ")
    return rest if first in patterns.OPENERS else words


def _is_name(words: str, known: AbstractSet[str]) -> bool:
    """Two words or more of which none is written small elsewhere: headings are not names."""
    first, *others = words.split()
    if not others or any(word.lower() in known for word in others):
        return False
    if patterns.WEEKDAYS.intersection((first, *others)) or others[-1] in patterns.MONTHS:
        return False
    return first in patterns.BEGINNINGS or first.lower() not in known


def _commands(lines: Lines) -> Iterator[str]:
    yield from commands(patterns.PROMPT.findall(lines.with_any("$ ")))
    for found in patterns.INLINE.findall(lines.with_any("`")):
        if found.partition(" ")[0] in patterns.PROGRAMS:
            yield from commands([found])


_FINDERS: tuple[tuple[Class, Callable[[Lines], Iterator[str]]], ...] = (
    ("number", _quantities),
    ("date", _days),
    ("error", _faults),
    ("name", _names),
    ("command", _commands),
)
