"""Inventions: exact items and quotations of a text that its source does not have.

The source of a summary is everything that its author could read. An item counts as present in any
form that an honest writer may give it: a path without its folders, a number with other separators,
a name in another case, a date in another order, a commit's hash cut short. Counts up to twenty and
amounts up to ten are not examined, because they are the writer's own; nor are quotations of a few
words.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import accumulate, chain
from typing import Literal, TypeAlias

from enfold.text.grammar import ItemClass, items_in_token, plain_kind, tokens_of
from enfold.text.items import extract
from enfold.text.words import UNSPACED, occurrences, texts_of_terms

InventionKind: TypeAlias = ItemClass | Literal["quotation"]
Invention: TypeAlias = tuple[InventionKind, str]

_CHECKED: tuple[ItemClass, ...] = ("path", "url", "identifier", "number", "date", "name", "error")
MAX_COUNT = 20
"""Whole numbers up to this one are not examined."""

_QUOTES = "“”„«»‟"
_TOKEN = re.compile(r"[^\s\"'`,;(){}\[\]<>|“”‘’«»…→]+")
_EDGES = ".:!?*-_=+~^&%"
_PART_BORDERS = "/.:=#@"
"""Marks between the parts of a token."""
_NUMBER = re.compile(r"\d[\d.,:_'\u00a0\u202f]*\d|\d")
_SPACED_NUMBER = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d.,]\d|\d)")
_DECIMAL = re.compile(r"\d+[.,]\d+")
_LONG_INTEGER = re.compile(r"(?<![\w.,:/#-])\d{3,}(?![\w]|[.,:/-]\d)")
_MAGNITUDES = {"k": 1e3, "K": 1e3, "M": 1e6, "m": 1e6, "bn": 1e9, "B": 1e9, "G": 1e9, "万": 1e4}
_THOUSANDS = ("k", "K", "bn", "万")
_MAGNITUDE = re.compile(r"(\d[\d.,]*) ?(bn|[kKMmBG万])(?![A-Za-z])")
_GROUPS = re.compile(r"\d{1,3}([.,' _\u00a0\u202f])\d{3}(?:\1\d{3})*")
_ISO_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)[-/.年](\d{1,2})[-/.月](\d{1,2})(?!\d)")
_DAY_FIRST = re.compile(r"(?<!\d)(\d{1,2})[/.](\d{1,2})[/.]((?:19|20)\d\d)(?!\d)")
_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            *("jan", "feb", "mar mär", "apr avr abr", "may mai", "jun juin"),
            *("jul juil", "aug aoû ago", "sep set", "oct okt out", "nov", "dec dez déc dic"),
        ),
        start=1,
    )
    for name in names.split()
}
_WORD_DATE = re.compile(
    r"(?<![\w.])(?:(?P<d1>\d{1,2})(?:st|nd|rd|th|\.|º)?\s+(?:of\s+|de\s+)?)?"
    r"(?P<month>[^\W\d_]{3,10})\.?(?:\s+(?P<d2>\d{1,2})(?:st|nd|rd|th)?(?!\d|:))?"
    r"(?:,?\s+(?:de\s+)?(?P<year>(?:19|20)\d\d))?"
)
_CLOCK = re.compile(
    r"(?<![\d:])([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?\s?([ap])?(?:\.?m\b)?", re.IGNORECASE
)
_HOUR = re.compile(r"(?<![\d:.])(\d{1,2})\s?([ap])\.?m\b", re.IGNORECASE)
_MEASURES = {
    "ms": ("ms", "millisec"),
    "kb": ("kb", "kib", "kilobyte"),
    "mb": ("mb", "mib", "megabyte"),
    "gb": ("gb", "gib", "gigabyte"),
    "px": ("px", "pixel"),
    "hz": ("hz", "hertz"),
    "km": ("km", "kilomet"),
    "kg": ("kg", "kilogram"),
    "mm": ("mm", "millimet"),
    "cm": ("cm", "centimet"),
}
"""Units, and the beginnings of the words that name them in a source."""
_MEASURED = re.compile(rf"(\d[\d.,]*)\s?({'|'.join(_MEASURES)})")
_MEASURE = re.compile(rf"[$€£¥₹%°度]|\d ?(?:{'|'.join(_MEASURES)}|hour|minute|second|day|year)")
_MAX_MEASURED = 10
"""Of hours, dollars and other measured amounts, whole numbers up to this one are not examined."""
_UNIT_BEFORE = 30
_UNIT_AFTER = 14
"""Characters around a number among which its unit is looked for: `timeout_ms = 351`."""
_HEX = re.compile(r"[0-9a-f]{7,40}")
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://(?:www\.)?|^www\.")
_SQUASHED = re.compile(r"[\W_]+")
_INNER_MARKS = re.compile(r"(?:[^\w\s\"'`,;(){}\[\]<>|“”‘’«»…→]|_)+")
"""Characters of tokens that are no letters and no digits."""
_WITHOUT_INNER_MARKS = dict.fromkeys(code for code in range(128) if _INNER_MARKS.match(chr(code)))
"""The same of ASCII, for `str.translate`."""
_TICKET = (
    r"(?:[#/№_=-]|(?<![^\W\d_])(?:pr|issue|ticket|bug|task|order|invoice|build|no|nr)\W{{1,2}}"
    r"|[^\W\d_]\W{{1,2}}(?=\d+(?!\w| [^\W\d_])))0*{}(?![\w%]|[.,:]\d)"
)
"""A number used as an identifier: after a mark or a label, or not before a word."""
_VERSION = re.compile(r"v?(\d+(?:\.\d+)+)")
_QUOTATION = re.compile(
    r"(?:(?<![\w=:,\"])\"(?=[\w'‘(¿¡])|(?<=\s)\"(?=[^\w\"\n]{1,12}\w))([^\"\n]{12,600})\"(?!\w)"
    r"|“([^”\n]{6,600})”|„([^“”\"\n]{12,600})[“”\"]|«([^»\n]{12,600})»|»([^«\n]{12,600})«"
    r"|[「『]([^」』\n]{6,400})[」』]"
    r"|(?<!\w)'(?=\w)((?:[^'\n]|(?<=\w)'(?=\w)){12,600})'(?!\w)"
    r"|‘((?:[^‘’\n]|(?<=\w)’(?=\w)){12,600})’(?!\w)"
)
"""A quotation in a pair of marks, with other marks inside; after a space the first word between
straight marks may follow a bullet or brackets."""
_CODE_SPAN = re.compile(r"(?<!`)`([^`\n]{3,200})`(?!`)")
_CODE_WORD = re.compile(r"(?<![\w./-])[A-Za-z][A-Za-z-]{2,}(?![\w./-])")
"""A word in a code span, such as the name of a command."""
_CUT_OFF = re.compile(r"[^\s,;]+…")
_LIKE_A_NAME = re.compile(
    r"[\w*-]{2,}(?:\.[\w*-]+)+|\.?[\w*.-]+/(?:[\w*.-]*[._\d*][\w*.-]*|[\w*.-]+/.*)?"
    r"|\.[a-z][\w-]+|(?=[^\W_]*\d[^\W\d_]+\d)[a-z0-9]{7,}"
)
"""Not an exact item, but like the name of a file or a folder, or like a code."""
_MIN_CODE_LENGTH = 5
"""Characters of a token that looks like code and is no exact item, such as `self.name`."""
_MIN_QUOTED_WORDS = 5
_RUNS = (5, 8)
"""Words in a row, and pairs of characters of an unspaced script, that show a quotation."""
_MIN_SHARED = 0.65
"""The share of a quotation's words in such runs, at least: fillers may be left out, and a form may
be adapted to the sentence around it."""
_SMALL_VOCABULARY = 300
"""Words of a source that is too small to tell its language from that of a quotation."""
_MIN_SAME_LANGUAGE = 0.12
"""The share of a quotation's words that the source has; a translated quotation has fewer."""
_MIN_OWN_WORDS = 0.6
"""The share of a summary's other words that the source has, if both are in the same language."""
_MIN_SAME_LETTERS = 0.4
"""The share of a quotation's letters that the source has, in scripts without spaces."""


_BLOCK = 1 << 16
"""Characters of the texts that are searched at once."""
_MOST_BLOCKS = 16
"""Blocks that are kept in memory, to be searched again; of a longer source only the latest."""


class SourceText:
    """Everything that a summary may repeat, searchable in the forms that a summary may use."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)
        self._blocks: dict[int, str] = {}
        self._literal: dict[str, bool] = {}
        self._forms: dict[tuple[ItemClass, str], bool] = {}

    def literal(self, items: Iterable[str]) -> set[str]:
        """Return the items that a text has as they are, without a copy of all texts.

        A summary usually follows the order of its source. So each item is looked for where the
        item before it was found, then after that place, then before it.
        """
        wanted = list(items)
        place, blocks = 0, len(self._borders) - 1
        for item in wanted:
            if item in self._literal:
                continue
            self._literal[item] = False
            for number in chain(range(place, blocks), range(place)):
                if _has_literally(self._block(number), item):
                    self._literal[item] = True
                    place = number
                    break
        return set(filter(self._literal.__getitem__, wanted))

    @cached_property
    def _borders(self) -> list[int]:
        """The indexes of the texts that begin a block, and the number of texts."""
        ends = list(accumulate(map(len, self._texts)))
        borders, end = [0], 0
        while borders[-1] < len(ends):
            border = min(bisect_left(ends, end + _BLOCK) + 1, len(ends))
            borders.append(border)
            end = ends[border - 1]
        return borders

    def _all_blocks(self) -> Iterator[str]:
        return map(self._block, range(len(self._borders) - 1))

    def _block(self, number: int) -> str:
        """Return the texts of a block, as `_text` has them."""
        found = self._blocks.get(number)
        if found is None:
            first, end = self._borders[number : number + 2]
            found = _with_plain_quotes("\n".join(self._texts[first:end]))
            if len(self._borders) > _MOST_BLOCKS:
                self._blocks.clear()
            self._blocks[number] = found
        return found

    @cached_property
    def _text(self) -> str:
        return "\n".join(self._all_blocks())

    @cached_property
    def _lower(self) -> str:
        return "\n".join([block.lower() for block in self._all_blocks()])

    @cached_property
    def _letters(self) -> frozenset[str]:
        return frozenset(self._lower)

    @cached_property
    def _lines(self) -> tuple[str, str]:
        """The lines in lower case: those of ASCII, and the others."""
        plain: list[str] = []
        others: list[str] = []
        for block in self._all_blocks():
            lines = [block] if block.isascii() else block.split("\n")
            plain += [line.lower() for line in lines if line.isascii()]
            others += [line.lower() for line in lines if not line.isascii()]
        return "\n".join(plain), "\n".join(others)

    @cached_property
    def _squashed(self) -> tuple[str, ...]:
        """The lines with only the letters and digits of tokens."""
        return tuple(map(_without_marks, self._lines))

    @cached_property
    def _squashed_parts(self) -> tuple[str, ...]:
        """The lines with only the letters and digits of the parts of tokens."""
        return tuple(_without_marks(_with_spaces(each, _PART_BORDERS)) for each in self._lines)

    @cached_property
    def _has_bare_marks(self) -> bool:
        """True if a token, or a part of one, has no letters and no digits."""
        tokens = (match[0] for match in _TOKEN.finditer(self._lower))
        parts = (part for token in tokens for part in (token, *_parts_of(token)))
        return any(not _SQUASHED.sub("", part) for part in parts)

    @cached_property
    def _numbers(self) -> frozenset[str]:
        found: set[str] = set()
        for number in set(_NUMBER.findall(self._text)) | set(_SPACED_NUMBER.findall(self._text)):
            found.update(_readings(number))
            # A list without spaces, a version or an address has each of its numbers as well.
            if not _DECIMAL.fullmatch(number):
                found.update(part.lstrip("0") or "0" for part in re.findall(r"\d+", number))
        for number, magnitude in set(_MAGNITUDE.findall(self._text)):
            found.update(_multiplied(number, magnitude))
        return frozenset(found)

    @cached_property
    def _dates(self) -> frozenset[tuple[int, int, int]]:
        return frozenset(_dates_in(self._lower))

    @cached_property
    def _times(self) -> frozenset[int]:
        return frozenset(_times_in(self._lower))

    @cached_property
    def _hashes(self) -> tuple[str, ...]:
        return tuple(sorted(set(_HEX.findall(self._lower))))

    @cached_property
    def _words(self) -> list[str]:
        return texts_of_terms(self._text)

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset(self._words)

    @cached_property
    def _word_line(self) -> str:
        return f" {' '.join(self._words)} "

    def has_form(self, kind: ItemClass, item: str) -> bool:
        """Return True if the source has the item in another form that an honest writer may use."""
        key = (kind, item)
        if key not in self._forms:
            self._forms[key] = self._finds_form(kind, item)
        return self._forms[key]

    def _finds_form(self, kind: ItemClass, item: str) -> bool:
        lower = item.lower()
        if lower in self._lower and (self._has_literally(lower) or _has_token(self._lower, lower)):
            return True
        if kind == "number":
            return self._has_number(item)
        if kind == "date":
            return self._has_date(lower)
        if kind in {"path", "url"}:
            return self._has_path(lower)
        return self._has_identifier(lower)

    def _has_literally(self, lower: str) -> bool:
        return _has_literally(self._lower, lower)

    def _has_number(self, item: str) -> bool:
        for number in _NUMBER.findall(item):
            readings = set(_readings(number))
            for digits, magnitude in _MAGNITUDE.findall(item):
                if magnitude in _THOUSANDS:
                    readings.clear()  # 5k is not 5; 5m may be 5 metres
                readings.update(_multiplied(digits, magnitude))
            if "%" in item:
                readings.update(_divided(number))
            if not readings & self._numbers and not any(map(self._is_spelled, readings)):
                return False
        measured = _MEASURED.fullmatch(item.lower())
        return measured is None or self._has_unit(measured[1], _MEASURES[measured[2]])

    def _has_unit(self, number: str, unit: tuple[str, ...]) -> bool:
        """Return True if a unit stands next to the number, or the source writes it otherwise."""
        places = [match.start() for match in re.finditer(re.escape(number), self._lower)]
        around = (
            self._lower[max(0, at - _UNIT_BEFORE) : at + len(number) + _UNIT_AFTER] for at in places
        )
        return not places or any(name in near for near in around for name in unit)

    def _is_spelled(self, reading: str) -> bool:
        """Return True if the source has a number of at most three digits in English words."""
        if not reading.isdigit() or len(reading) > len("999"):
            return False
        return any(f" {spelled} " in self._word_line for spelled in _spelled(int(reading)))

    def _has_date(self, lower: str) -> bool:
        dates = set(_dates_in(lower))
        if dates:
            return all(self._has_day(date) for date in dates)
        times = set(_times_in(lower))
        if times:
            return bool(times & self._times)
        return all(set(_readings(number)) & self._numbers for number in _NUMBER.findall(lower))

    def _has_day(self, date: tuple[int, int, int]) -> bool:
        """Return True if the source has the day, and the year with it or at another place."""
        year, *day = date
        years = {other[0] for other in self._dates if list(other[1:]) == day}
        return bool(years) and (not year or year in years or (0 in years and self._has_year(year)))

    def _has_year(self, year: int) -> bool:
        return str(year) in self._numbers or any(other[0] == year for other in self._dates)

    def _has_path(self, lower: str) -> bool:
        bare = _SCHEME.sub("", lower).strip("/").removeprefix("./")
        if self._has_literally(bare):
            return True
        if "\\" in bare:
            return self._has_path(re.sub(r"\\+", "/", bare)) or re.sub(r"\\+", "/", bare) in (
                re.sub(r"\\+", "/", self._lower)
            )
        segments = bare.split("/")
        # A folder that was entered and a path inside it: `cd src/app`, then `tests/a.py`.
        for cut in range(1, len(segments)):
            folder, inside = "/".join(segments[:cut]), "/".join(segments[cut:])
            is_anchored = lower.startswith(("/", "~")) or "/" in inside
            if is_anchored and self._has_literally(folder) and self._has_literally(inside):
                return True
        return False

    def _has_identifier(self, lower: str) -> bool:
        number = lower.strip("#$@-")
        if number.isdigit():  # #96 is no part of 1965, and not `96 files`
            if number not in self._lower:
                return False
            return re.search(_TICKET.format(number), self._lower) is not None
        if self._has_squashed(lower):
            return True
        version = _VERSION.fullmatch(lower)
        if version:
            return self._has_literally(version[1]) or self._has_literally(f"v{version[1]}")
        if _HEX.fullmatch(lower):
            return lower in self._lower and any(each.startswith(lower) for each in self._hashes)
        parts = [part for part in re.split(r"[.:/@=]+", lower.strip("#$@-")) if part]
        return len(parts) > 1 and all(
            self._has_literally(part) or self._has_squashed(part) for part in parts
        )

    def _has_squashed(self, lower: str) -> bool:
        """Return True if a token or a part of one has these letters and digits.

        `maxRetries` and `MAX_RETRIES` have the same.
        """
        squashed = _SQUASHED.sub("", lower)
        if not squashed:
            return self._has_bare_marks
        if not any(squashed in text for text in self._squashed):
            return False  # a part of a token has none either
        return any(_has_between_borders(text, squashed) for text in self._squashed) or any(
            _has_between_borders(text, squashed) for text in self._squashed_parts
        )

    def has_language_of(self, words: list[str]) -> bool:
        """Return True if most of these words occur in the source, so that nothing is translated."""
        shared = sum(word in self._vocabulary for word in words)
        return shared >= _MIN_OWN_WORDS * max(1, len(words))

    def has_quotation(self, quotation: str, other_words: Callable[[], list[str]]) -> bool:
        """Return True if the source has most runs of words of each part of a quotation.

        `other_words` returns the other words of the text that quotes. If they are in another
        language than the source, the author may have translated. Then a quotation in another
        language is not examined.
        """
        for part in re.split(r"…|\.\.\.|\[[^\]]*\]", quotation):
            words = texts_of_terms(part)
            if len(words) < _MIN_QUOTED_WORDS:
                continue
            if self._has_words_of(part) or self._has_run_of(words):
                continue
            if self._may_be_quoted(words) or self.has_language_of(other_words()):
                return False
        return True

    def _has_words_of(self, part: str) -> bool:
        """Return True if a text has the part of a quotation literally, as whole words."""
        return any(_has_words_of(block, part) for block in self._all_blocks())

    def _may_be_quoted(self, words: list[str]) -> bool:
        """Return False if the source is in another language, so that only a translation is."""
        if UNSPACED.match("".join(words)):
            letters = set("".join(words))
            return len(letters & self._letters) >= _MIN_SAME_LETTERS * len(letters)
        shared = sum(word in self._vocabulary for word in words)
        is_small = len(self._vocabulary) < _SMALL_VOCABULARY
        return shared >= (1 if is_small else _MIN_SAME_LANGUAGE * len(words))

    def _has_run_of(self, words: list[str]) -> bool:
        """Return True if most of the words stand in runs that the source has."""
        is_paired = UNSPACED.match("".join(words)) is not None
        length = _RUNS[1] if is_paired else _RUNS[0]
        if len(words) < length:
            return f" {' '.join(words)} " in self._word_line
        covered = end = 0
        needed = _MIN_SHARED * len(words)
        for start in range(len(words) - length + 1):
            if f" {' '.join(words[start : start + length])} " in self._word_line:
                covered += start + length - max(start, end)
                end = start + length
            possible = covered + len(words) - max(start + 1, end)
            if covered >= needed or possible < needed:
                break
        return covered >= needed


_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def _spelled(value: int) -> Iterator[str]:
    """Yield a number below a thousand in English words, as texts of terms have them."""
    hundreds, rest = divmod(value, 100)
    if hundreds:
        for tail in ("", *(f" {each}" for each in _spelled(rest))) if rest else ("",):
            if bool(tail) == bool(rest):
                yield f"{_UNITS[hundreds]} hundred{tail}"
                yield f"{_UNITS[hundreds]} hundred and{tail}" if tail else f"a hundred{tail}"
        return
    if rest < len(_UNITS):
        yield _UNITS[rest]
        return
    tens, unit = divmod(rest, 10)
    yield f"{_TENS[tens - 2]} {_UNITS[unit]}" if unit else _TENS[tens - 2]


def _with_plain_quotes(text: str) -> str:
    # Several times as fast as `str.translate`, which looks up every character that is not ASCII.
    for quote in () if text.isascii() else _QUOTES:
        text = text.replace(quote, '"')
    return text


def find_inventions(text: str, source: SourceText) -> tuple[Invention, ...]:
    """Return the items and quotations of a text that its source does not have."""
    found: dict[Invention, None] = {}
    # A token before an ellipsis was cut off.
    plain = _CUT_OFF.sub("…", _with_plain_quotes(text))
    plain = _SPACED_NUMBER.sub(lambda match: match[0].replace(" ", ""), plain)
    items = extract(plain)
    examined: list[tuple[ItemClass, str]] = [
        *((kind, item) for kind in _CHECKED for item in items[kind] if _is_examined(kind, item)),
        *(("identifier", name) for name in _names_like_code(plain)),
    ]
    numbers = dict.fromkeys(_LONG_INTEGER.findall(plain))
    # Nearly all items are written as in the source, so other forms are rarely looked for.
    wanted = {*(item for _, item in examined), *numbers}
    literal = source.literal(sorted(wanted, key=plain.find))
    for kind, item in examined:
        if item not in literal and not source.has_form(kind, item):
            found[kind, item] = None
    covered = " ".join(item for _, item in found)
    for number in numbers:
        if (
            number not in covered
            and number not in literal
            and not source.has_form("number", number)
        ):
            found["number", number] = None
    found.update((("quotation", each), None) for each in _invented_quotations(text, source))
    return tuple(found)


def _names_like_code(text: str) -> Iterator[str]:
    """Yield tokens that are no exact items and look like code, and the words of code spans."""
    for token in dict.fromkeys(tokens_of(text)):
        core = token.rstrip(_EDGES).lstrip(_EDGES.replace(".", ""))
        is_code = plain_kind(core) == "code" or _LIKE_A_NAME.fullmatch(core) is not None
        if is_code and len(core) >= _MIN_CODE_LENGTH and not items_in_token(token):
            yield core
    for span in _CODE_SPAN.findall(text):
        yield from _CODE_WORD.findall(span)


def _invented_quotations(text: str, source: SourceText) -> Iterator[str]:
    """Yield the quotations of a text that its source does not have."""
    for quotation in quotations(text):
        other_words = partial(texts_of_terms, text.replace(quotation, " "))
        if not source.has_quotation(quotation, other_words):
            yield quotation


def quotations(text: str) -> Iterator[str]:
    """Yield the quotations of a text that are long enough to be examined."""
    for match in _QUOTATION.finditer(text):
        quotation = match[match.lastindex or 0]
        if len(texts_of_terms(quotation)) >= _MIN_QUOTED_WORDS:
            yield quotation


def _is_examined(kind: ItemClass, item: str) -> bool:
    if kind == "name":
        return "@" in item and "." in item  # an address; names of people take many forms
    if kind == "error":
        return " " not in item
    if kind == "number":
        numbers = _NUMBER.findall(item)
        is_count = all(each.isdigit() and int(each) <= MAX_COUNT for each in numbers)
        if any(magnitude in _THOUSANDS for _, magnitude in _MAGNITUDE.findall(item)):
            return True
        return not is_count or (
            _MEASURE.search(item) is not None and max(map(int, numbers)) > _MAX_MEASURED
        )
    return True


def _has_literally(text: str, item: str) -> bool:
    """Return True if the item is in the text and not a part of a longer word or number."""
    for start in occurrences(text, item):
        end = start + len(item)
        is_part = _continues(text[max(0, start - 2) : start], item[0])
        if not is_part and not _continues(text[end : end + 2][::-1], item[-1]):
            return True
    return False


def _has_token(text: str, token: str) -> bool:
    """Return True if the text has the token, with or without the punctuation around it."""
    if not _TOKEN.fullmatch(token):
        return False
    is_bare = token == token.strip(_EDGES)
    for start in occurrences(text, token):
        before, after = start, start + len(token)
        while is_bare and before and text[before - 1] in _EDGES:
            before -= 1
        while is_bare and after < len(text) and text[after] in _EDGES:
            after += 1
        begins_inside = before and _TOKEN.match(text, before - 1)
        if not begins_inside and not _TOKEN.match(text, after):
            return True
    return False


def _has_between_borders(text: str, word: str) -> bool:
    """Return True if the text has the word, and no letter or digit next to it."""
    for start in occurrences(text, word):
        end = start + len(word)
        if not text[max(0, start - 1) : start].isalnum() and not text[end : end + 1].isalnum():
            return True
    return False


def _has_words_of(text: str, part: str) -> bool:
    """Return True if the text has the part literally, between borders of words."""
    for start in occurrences(text, part):
        end = start + len(part)
        begins = _is_border(text[max(0, start - 1) : start], part[0])
        if begins and _is_border(part[-1], text[end : end + 1]):
            return True
    return False


def _is_border(before: str, after: str) -> bool:
    """Return True if a word ends or begins between two characters, of which one may be missing."""
    return any(each.isascii() and not each.isalnum() for each in (before, after))


def _parts_of(token: str) -> list[str]:
    return [part for part in re.split(f"[{_PART_BORDERS}]", token) if part]


def _without_marks(text: str) -> str:
    """Return a text with only the letters and digits of its tokens."""
    if text.isascii():
        return text.translate(_WITHOUT_INNER_MARKS)
    return _INNER_MARKS.sub("", text)


def _with_spaces(text: str, marks: str) -> str:
    """Return the text with a space for each of the marks."""
    for mark in marks:
        text = text.replace(mark, " ")
    return text


def _continues(around: str, inner: str) -> bool:
    """Return True if the last of the characters outside continues the word or number inside.

    1.5 is a part of 11.5 and of 1.55. Words of unspaced scripts have no visible borders.
    """
    outer = around[-1:]
    if not inner.isascii() or not outer.isascii() or not (inner.isalnum() or inner == "_"):
        return False
    if outer.isalnum() or outer == "_":
        return True
    is_inside_number = inner.isdigit() and outer in {".", ","} and len(around) > 1
    return is_inside_number and around[0].isdigit()


def _readings(number: str) -> Iterator[str]:
    """Yield the values that a number in digits may stand for, each written in one way."""
    number = number.rstrip(".,:_'\u00a0\u202f")
    if ":" in number:
        yield number
        return
    if _GROUPS.fullmatch(number):
        yield re.sub(r"\D", "", number).lstrip("0") or "0"
    for whole, mark, decimals in (number.rpartition("."), number.rpartition(",")):
        if mark and decimals.isdigit():
            digits = re.sub(r"\D", "", whole).lstrip("0") or "0"
            fraction = decimals.rstrip("0")
            yield f"{digits}.{fraction}" if fraction else digits
    if number.isdigit():
        yield number.lstrip("0") or "0"
    elif not _GROUPS.fullmatch(number):
        yield number


def _multiplied(number: str, magnitude: str) -> Iterator[str]:
    for reading in _readings(number):
        if re.fullmatch(r"\d+(?:\.\d+)?", reading):
            yield _written(float(reading) * _MAGNITUDES[magnitude])


def _divided(number: str) -> Iterator[str]:
    for reading in _readings(number):
        if re.fullmatch(r"\d+(?:\.\d+)?", reading):
            yield _written(float(reading) / 100)


def _written(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _dates_in(lower: str) -> Iterator[tuple[int, int, int]]:
    """Yield year, month and day of the dates in a text; the year is 0 where it is not given."""
    for year, month, day in _ISO_DATE.findall(lower):
        yield int(year), int(month), int(day)
    for first, second, year in _DAY_FIRST.findall(lower):
        yield int(year), int(second), int(first)
        yield int(year), int(first), int(second)
    for match in _WORD_DATE.finditer(lower):
        month = _MONTHS.get(match["month"][:4]) or _MONTHS.get(match["month"][:3])
        day = match["d1"] or match["d2"]
        if month and day:
            yield int(match["year"] or 0), month, int(day)


def _times_in(lower: str) -> Iterator[int]:
    """Yield the minutes of the day of the times in a text; half past two may be 2:30 or 14:30."""
    for hour, minute, half in _CLOCK.findall(lower):
        yield from _minutes(int(hour), int(minute), half)
    for hour, half in _HOUR.findall(lower):
        yield from _minutes(int(hour), 0, half)


def _minutes(hour: int, minute: int, half: str) -> Iterator[int]:
    hours = {hour % 12 + 12} if half == "p" else {hour % 12} if half == "a" else {hour}
    if not half and hour <= 12:  # noqa: PLR2004 - a clock face
        hours.add(hour % 12 + 12)
    yield from (each * 60 + minute for each in hours)
