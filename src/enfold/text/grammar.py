"""The grammar of exact items: which class a token, or a phrase of a line, belongs to.

Exact items are paths, addresses, identifiers (also versions, flags and ids), numbers with a unit
or a label, dates and times, names, errors and commands. The receipt, the built-in summarizer, the
evaluation and recall all read text by the functions of this module:

- `items_in_token` reads a run of characters without spaces; `plain_kind` names the kind of a token
  that is not exact: a word, a capitalized word, an acronym, a whole number, code.
- `phrases_in` finds items of several words: a quantity, a day, an error with its message, a
  command. `names_in` finds people's and places' names.

Word lists are in `grammar.toml`.
"""

from __future__ import annotations

import errno
import re
import tomllib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Literal, TypeAlias, cast, get_args

from enfold.text.words import UNSPACED_LETTERS, UNSPACED_MARKS

ItemClass: TypeAlias = Literal[
    "path", "url", "identifier", "number", "date", "name", "error", "command"
]
ITEM_CLASSES: tuple[ItemClass, ...] = get_args(ItemClass)
PlainKind: TypeAlias = Literal["mark", "word", "capitalized", "acronym", "integer", "code"]
"""Kinds of tokens that are not exact items. An integer without a unit or a label is too frequent
to count as an item; so is `code` such as `self.name`."""
Kind: TypeAlias = ItemClass | PlainKind
FoundItem: TypeAlias = tuple[ItemClass, str]

MAX_ITEM_LENGTH = 200
"""Characters. Longer text is content, not the name of something."""
_MAX_TOKEN_LENGTH = 2_000
_MIN_LENGTH = 2
_MIN_PIECE_LENGTH = 3

_LISTS = tomllib.loads(files(__package__).joinpath("grammar.toml").read_text(encoding="utf-8"))


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


DECISION_PHRASES: tuple[str, ...] = tuple(_LISTS["decisions"])
"""Lower-case phrases that mark a sentence as a decision."""

# Where tokens begin and end

_TOKEN = re.compile(
    rf"""[^\s\x1b"'`,;(){{}}\[\]<>|“”‘’«»…•·→│─━═{UNSPACED_LETTERS}{UNSPACED_MARKS}]++"""
)
_ESCAPE = re.compile(r"\\+(?:[nrt]|u[0-9a-fA-F]{4})?")
"""Escape sequences that are left in text that was written as JSON."""
_JOINT = re.compile(r"(?:->|=>|[=:+&?!*^~#%@$])+")
"""Characters that separate the items of one token."""
_LEFT_EDGE = "*:!?=+^&%"
_RIGHT_EDGE = "*:!?=+^&.~-"
_WORD_END = ".,:;!?"
"""Punctuation after a word, which ends a token or is not a part of its item."""
_CURRENCIES = "$€£¥₹"
_SIGNS = f"{_CURRENCIES}+-~≈±"
"""A number may begin with one of these."""

# Paths and addresses

_FILE_NAMES = _words("file_names")
_FILE_ENDINGS = _words("file_endings")
_PATH_ENDINGS = _FILE_ENDINGS | _words("path_endings")
_ROOTS = _words("roots")
_DOMAINS = _words("domains")
_LONGER_DOMAINS = _DOMAINS | _words("more_domains")
_SEGMENT = re.compile(r"[\w.@+~*$%-]++")
_DOTFILE = re.compile(r"\.(?:env|editorconfig|git[a-z]++|[a-z]++ignore|[a-z]++rc)(?:\.[a-z]++)?")
_PACKAGE = re.compile(r"@[a-z][\w.-]*+/[a-z][\w.-]*+")
_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\{1,2}[\w.@+~$-]++(?:\\{1,2}[\w.@+~$-]++)*+")
_LINE_NUMBER = re.compile(
    r"(?:(?<=\.[a-z])|(?<=\.[a-z]{2})|(?<=\.[a-z]{3})|(?<=\.[a-z]{4}))-\d++(?:-.*+)?$"
)
"""The line number that search tools append to a path."""
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,15}+://\w[\w.-]*+(?::\d++)?(?:[/?#]\S*+)?")
_LOCAL_ADDRESS = re.compile(r"(?:localhost|\d{1,3}(?:\.\d{1,3}){3}):\d{2,5}(?:/\S*+)?")
_EMAIL = re.compile(r"[\w+-]++(?:\.[\w+-]++)*+@[\w-]++(?:\.[\w-]++)*?\.[A-Za-z]{2,}+")

# Identifiers and error codes

_ERROR_CODES = frozenset(errno.errorcode.values()) | _words("signals")
_CAMEL_CASE = re.compile(
    r"[a-z]++(?:[A-Z]++[a-z]++)++[A-Z]*+|(?:[A-Z]++[a-z]++){2,}+[A-Z]*+|[A-Z]{3,}+[a-z]{2,}+"
)
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_CODE = re.compile(
    r"(?P<error>(?:[a-z_]\w*+\.)*+[A-Z][A-Za-z]*?(?:Error|Exception)"
    r"|ERR_[A-Z][A-Z0-9_]++|(?:TS|CS|CA|MSB|LNK|SC|PLR|RUF|E|F|W)\d{3,5}|ORA-\d{5}"
    r"|(?:E|EC|ERR|ERROR)-\d{2,6})"
    rf"|(?P<identifier>{_UUID}|#\d{{2,7}}|[A-Z][A-Z0-9]{{1,9}}-\d{{1,7}}|[A-Z]-\d{{2,7}}"
    r"|CVE-\d{4}-\d{4,7}"
    r"|v\d++(?:\.\d++)++(?:[-+.][\w.+-]*+)?"
    r"|--[a-z][\w-]++|\$[A-Z_][A-Z0-9_]++|[A-Za-z_]\w*+(?:::\w++)++"
    r"|[A-Za-z]{1,20}\d[A-Za-z0-9]{0,30}"
    r"|(?=[a-z.-]*\d)[a-z][a-z0-9]*+(?:[.-][a-z0-9]++)++)"
)
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}+")
_RANDOM_ID = re.compile(r"(?=[^\d]*\d)(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z0-9_-]{8,31}+")
_DOTTED = re.compile(r"[A-Za-z_$][\w$]*+(?:\.[A-Za-z_$][\w$]*+)*+")
_UNDERSCORE_OR_HUMP = re.compile(
    r"[^\W_]{2}_+[^\W_]|[^\W_]_+[^\W_]{2}|[a-z0-9][A-Z][a-z]|[A-Z]{2}[a-z]{2}"
)
_CODE_LIKE = re.compile(r"\w_\w|[a-z][A-Z]|\w->\w|^[@#$]\w{2,}|^[a-z_]\w+(?:\.[A-Za-z_]\w+)+$")
_LETTER = re.compile(r"[^\W\d_]")

# Numbers, dates and times

_AMOUNT = r"\d(?:[\d,.]*\d)?+"
_UNITS = (
    "ms|µs|us|ns|secs?|mins?|hrs?|[KMGTP]i?B|[kKMGT]b|kbps|[MG]bps|px|pt|r?em|vh|vw|dpi|fps|rpm|km|"
    "cm|mm|µm|nm|kg|mg|lbs?|oz|ml|°[CF]?|[kMG]?Hz|kWh?|mAh|[kKMB]|bn|x|%|‰|USD|EUR|GBP|CHF|JPY|CNY"
)
_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d++)?)?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_NUMERIC = re.compile(
    r"(?P<date>"
    r"(?:19|20)\d\d-[01]\d-[0-3]\d(?:[T_]\d\d(?::?\d\d){0,2}(?:\.\d++)?(?:Z|[+-]\d\d:?\d\d)?)?"
    rf"|(?:19|20)\d\d/[01]?\d/{_DAY}|{_DAY}[/.]{_DAY}[/.](?:19|20)\d\d"
    rf"|{_CLOCK}(?:am|pm|AM|PM|Z|h)?|\d{{1,2}}(?:am|pm|AM|PM))"
    rf"|(?P<identifier>{_UUID}|\d++\.\d++\.\d++(?:[-+.][\w.+-]*+)?|0x[0-9A-Fa-f]++)"
    r"|(?P<number>[$€£¥₹](?:\d\d[\d,.]*+|\d\.\d++)(?:[kKMB]|bn)?"
    rf"|[-+~≈±]?{_AMOUNT}(?:{_UNITS})(?:/(?:s|sec|min|h|hr|d|day|week|mo|month|yr|year))?"
    r"|[-+~≈±]?(?:[1-9]\d{0,2}|\d+\.\d+)[smh]|[-+~≈±]?[1-9]\d?d"
    r"|[-+~≈±]?\d++\.\d++(?:[eE][-+]?\d++)?|\d++[eE][-+]\d++)"
    r"|(?P<seat>\d{1,4}[A-Z]{1,3})"
)
"""A token that begins with a digit, a sign or a currency symbol."""
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})++(?:\.\d{1,4}+)?(?![\d,])")
"""Digits in groups of three. Tokens end at commas, so these are found in lines."""
_QUANTITY = re.compile(r"\d(?:[\d,.]{0,20}\d)?+[ \u00a0-]?(%|°[CF]|[^\W\d_]{1,12}+)")
"""A number and the word after it; an item if the word is in the list of units."""
_UNIT_WORDS = _words("units")
_INTEGER = re.compile(r"\d{2,7}+(?![.,:/%-]?\w)")
_LABELS = _words("labels")
_LABEL_BEFORE = re.compile(r"(?<![\w.])([A-Za-z]{2,8})(?::| ?=)?\Z")
_LABEL_JOINTS = frozenset(" =:")
_LABEL_SPAN = 12
_DIGITS = re.compile(r"\d++(?:\.\d++)*+")
_GROUPED_DIGITS = re.compile(r"\d[\d,.]*\d")
_BEFORE_DIGITS = 16
_AFTER_DIGIT = re.compile(r"\d(?:[^\n]{0,31}?\d)*+[^\n]{0,31}")
"""Characters around a digit that a number or a date may have: a label, a month, a unit."""
_COUNTERS = "|".join(sorted(_words("counters"), key=len, reverse=True))
_COUNTED = re.compile(
    rf"\d(?:[\d,.]{{0,20}}\d)?+ ?(?:(?:[万千百亿億]\d++)++[万千百亿億]?+(?:{_COUNTERS})?+"
    rf"|(?:{_COUNTERS}){{1,3}}+)"
)
_MONTH_PATTERN = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|"
    "Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?|"
    "Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
)
_MONTH_FIRST = re.compile(
    rf"(?:{_MONTH_PATTERN})\.? {_DAY}(?:st|nd|rd|th)?(?!\d)(?:,? (?:19|20)\d\d)?(?!\w)"
)
_DAY_FIRST = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th|er|\.)? (?:de |of )?([^\W\d_]{3,11}+)"
    r"(?:,? (?:de )?(?:19|20)\d\d(?!\d))?"
)
"""A number and the word after it; a date if the word is in the list of months."""
_MONTHS = _words("months")
_DAYS_OF_MONTH = range(1, 32)
_UNSPACED_DAY = re.compile(r"\d{4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|\d{1,2}月\d{1,2}[日号]")
_HOUR = re.compile(rf"(?<![\w.:]){_CLOCK} (?:[ap]\.?m\b|[AP]M\b)")
_HALVES_OF_DAY = (" am", " pm", " a.m", " p.m", " AM", " PM")

# Errors and commands

_STATUS = re.compile(
    r"(?:[Ee]xit(?:ed with)? (?:code|status)|[Ss]tatus(?: code)?|HTTP(?:/\d\.\d)?|[Ee]rrno"
    r"|[Ee]rror code)[ :=]{1,2}-?\d{1,5}(?!\w)"
)
_STATUS_WORDS = ("xit ", "xited ", "tatus", "HTTP", "rrno", "rror code")
_ERROR_MESSAGE = re.compile(r"(?:Error|Exception): ([^\n\r\"\\{}$%]{4,81})")
_MAX_MESSAGE_LENGTH = 80
_PROMPT = re.compile(r"^[ \t]*+\$ (?=[a-z./])([^\n]{2,200})$", re.MULTILINE)
_INLINE_COMMAND = re.compile(r"`([a-z][\w.-]{0,40}+ [^`\n]{1,160})`")
_PROGRAMS = _words("programs")
_COMMAND_LENGTHS = range(3, MAX_ITEM_LENGTH + 1)

# Names

_CAPITAL = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĘĚĞĢĪİĶŁĻŃŅŇŐŘŚŞŠŢŤŪŮŰŹŻŽА-ЯЁΑ-Ω"
_SMALL = "a-zß-öø-ÿāăąćčďđēęěğģīıķłļńņňőřśşšţťūůűźżžа-яёα-ωά-ώ"
_NAME = rf"[{_CAPITAL}][{_SMALL}]++(?:[-'’][{_CAPITAL}][{_SMALL}]++)?+"
_FULL_NAME = re.compile(
    rf"{_NAME}(?: (?:(?:de|van|von|der|da|del|la|di|bin|al|dos) )?"
    rf"(?:{_NAME}|[{_CAPITAL}]\.)){{1,3}}(?![\w-])"
)
_HANDLE = re.compile(r"@[a-z][A-Za-z0-9-]{2,38}+(?![\w/.(@])")
_SENTENCE_OPENERS = _words("openers")
_WEEKDAYS = _words("weekdays")
_NAME_OPENERS = _words("beginnings")
_DOCUMENTATION_TAGS = _words("tags")


def tokens_of(text: str) -> list[str]:
    """Return the runs of characters of a text that may be items or contain some."""
    return _TOKEN.findall(text)


def items_in_tokens(text: str) -> Iterator[FoundItem]:
    """Yield the items of all tokens of a text, those of a repeated token once."""
    # Most words between spaces are no items, and repeated ones are soon found.
    words = dict.fromkeys(text.split())
    others = [word for word in words if not _is_plain_word(word.rstrip(_WORD_END))]
    for token in dict.fromkeys(tokens_of(" ".join(others))):
        yield from items_in_token(token)


def _is_plain_word(word: str) -> bool:
    """Return True for letters that are no item: all small, or small ones after a capital."""
    if not word.isalpha():
        return False
    return word.islower() or (word.isascii() and word[1:].islower() and word not in _FILE_NAMES)


def near_digits(text: str) -> str:
    """Return the parts of a text that can have numbers and dates, on lines of their own."""
    parts: list[str] = []
    end = -_BEFORE_DIGITS
    for found in _AFTER_DIGIT.finditer(text):
        start = found.start() - _BEFORE_DIGITS
        if start > end:
            parts += ("\n", text[max(0, start) : found.end()])
        else:
            parts.append(text[max(0, end) : found.end()])
        end = found.end()
    return "".join(parts)


def items_in_token(token: str) -> tuple[FoundItem, ...]:
    """Return the items of a token: the whole of it, or the parts between its separators."""
    if len(token) < _MIN_LENGTH or (token.isalpha() and token.islower()):
        return ()
    return _items_in_token(token)


# Texts repeat their tokens, and the receipt reads what leaves the view, the view and the users'
# words, which share most of theirs.
@lru_cache(maxsize=8_192)
def _items_in_token(token: str) -> tuple[FoundItem, ...]:
    if len(token) > _MAX_TOKEN_LENGTH:
        return ()
    if "\\" in token and not _WINDOWS_PATH.fullmatch(token):
        return tuple(item for part in _ESCAPE.split(token) for item in items_in_token(part))
    core = token.lstrip(_LEFT_EDGE).rstrip(_RIGHT_EDGE)
    if "/" in core:
        core = _LINE_NUMBER.sub("", core)
    if len(core) < _MIN_LENGTH:
        return ()
    whole = _exact_class(core)
    if whole is not None:
        return ((whole, core),) if len(core) <= MAX_ITEM_LENGTH else ()
    if core.isalnum() or ("://" in core and "@" in core):  # an address that contains a password
        return ()
    parts = [part.strip(".-/") for part in _JOINT.split(core)]
    if len(parts) == 1:
        return ()
    found = (
        (_exact_class(part), part)
        for part in parts
        if _MIN_PIECE_LENGTH <= len(part) <= MAX_ITEM_LENGTH
    )
    return tuple((kind, part) for kind, part in found if kind is not None)


def plain_kind(core: str) -> PlainKind:
    """Return the kind of a token that is not an exact item, without the punctuation around it."""
    if not core:
        return "mark"
    if core.isalpha():
        if core.islower() or (len(core) == 1) or not core.isascii():
            return "capitalized" if core[0].isupper() and len(core) > 1 else "word"
        if core[1:].islower():
            return "capitalized"
        return "acronym" if core.isupper() else "code"
    if _CODE_LIKE.search(core):
        return "code"
    if any(map(str.isdigit, core)):
        return "code" if core[0].isalpha() else "integer"
    return "capitalized" if core[0].isupper() and _LETTER.search(core) else "word"


def _exact_class(core: str) -> ItemClass | None:
    """Return the class of a token as a whole. None for a word and for several things in one."""
    if core.isalpha():
        return _class_of_letters(core)
    if core.isdigit():
        return None
    if "://" in core:
        return "url" if _URL.fullmatch(core) else None
    if core[0].isdigit() or core[0] in _SIGNS:
        numeric = _NUMERIC.fullmatch(core)
        if numeric:
            group = numeric.lastgroup
            return "identifier" if group == "seat" else cast("ItemClass", group)
    found = _class_of_address(core)
    if found is not None or "/" in core or "\\" in core or not core.isascii():
        return found
    return _class_of_code(core)


def _class_of_address(core: str) -> ItemClass | None:
    if "@" in core and _EMAIL.fullmatch(core):
        return "name"
    if ":" in core and _LOCAL_ADDRESS.fullmatch(core):
        return "url"
    if "/" not in core and "\\" not in core:
        return None
    if core[0] == "@" and _PACKAGE.fullmatch(core):
        return "identifier"
    return "path" if _is_path(core) else None


def _class_of_letters(word: str) -> ItemClass | None:
    if word.islower() or not word.isascii():
        return None
    if word.isupper():
        return "error" if word in _ERROR_CODES else None
    if word in _FILE_NAMES:
        return "path"
    if not _CAMEL_CASE.fullmatch(word):
        return None
    is_error = word.endswith(("Error", "Exception")) and word[0].isupper()
    return "error" if is_error else "identifier"


def _class_of_code(core: str) -> ItemClass | None:
    """Return the class of a token with letters and other characters but without a slash."""
    stem, dot, ending = core.rpartition(".")
    if dot and ending in _FILE_ENDINGS and stem and _SEGMENT.fullmatch(stem):
        return "path" if _is_file(stem, ending) else None
    if core[0] == "." and _DOTFILE.fullmatch(core):
        return "path"
    code = _CODE.fullmatch(core)
    if code:
        return cast("ItemClass", code.lastgroup)
    if _HASH.fullmatch(core) or _RANDOM_ID.fullmatch(core):
        return "identifier"
    if not _DOTTED.fullmatch(core):
        return None
    words = core.split(".")
    domains = _DOMAINS if len(words) == 2 else _LONGER_DOMAINS  # noqa: PLR2004 - one dot
    if len(words) > 1 and words[-1] in domains and core.islower() and "_" not in core:
        return "url"
    # `os.path.join` is exact; `self.name` is frequent in code and `e.g` is an abbreviation.
    is_qualified = len(words) > 2 and min(map(len, words)) > 1  # noqa: PLR2004
    return "identifier" if is_qualified or _UNDERSCORE_OR_HUMP.search(core) else None


def _is_file(stem: str, ending: str) -> bool:
    """Return True for a file's name; False for `Node.js` and an attribute of one letter."""
    if not any(map(str.isalpha, stem)):
        return False
    if ending == "js" and stem[0].isupper() and stem.isalpha():
        return False
    return len(ending) > 1 or len(stem) > 2  # noqa: PLR2004 - `x.c` is an attribute more often


def _is_path(core: str) -> bool:
    if "\\" in core:
        return _WINDOWS_PATH.fullmatch(core) is not None
    first, *rest = core.removesuffix("/").split("/")
    anchored = first in {"", ".", "..", "~"}
    segments = rest if anchored else [first, *rest]
    if not segments or not all(map(_SEGMENT.fullmatch, segments)):
        return False
    if not any(map(str.isalpha, core)):
        return False
    _, dot, ending = segments[-1].rpartition(".")
    if dot and ending in _PATH_ENDINGS:
        return True
    if anchored:
        return len(segments) > 1 or first in {".", "..", "~"}
    if segments[0] in _ROOTS:
        return len(segments) > 1 and segments[1][0].isalpha()
    # Two words with a slash are an alternative (and/or); three need a sign of a file system.
    has_three = len(segments) > 2  # noqa: PLR2004
    return has_three and any(set(each) & set("._-0123456789") for each in segments)


def phrases_in(text: str) -> Iterator[FoundItem]:
    """Yield the items of several words in a text of one or more lines, except names."""
    for kind, find in PHRASE_FINDERS:
        for item in find(text):
            yield kind, item


def number_parts(phrase: str) -> set[str]:
    """Return the numbers that are a part of a longer number or quantity."""
    return {*_DIGITS.findall(phrase), *_GROUPED_DIGITS.findall(phrase)} - {phrase}


def names_in(text: str) -> Iterator[str]:
    """Yield the names of several words; some may be headings, see `is_written_small`."""
    for found in _FULL_NAME.finditer(text):
        before = text[found.start() - 1] if found.start() else " "
        first, _, rest = found[0].partition(" ")
        name = rest if first in _SENTENCE_OPENERS else found[0]
        if not (before.isalnum() or before in "_./#@&-") and _may_be_name(name):
            yield name


def handles_in(text: str) -> Iterator[str]:
    """Yield the names of people on a platform, such as `@anna-k`."""
    handles = lines_with(text, " @")
    for handle in _HANDLE.finditer(handles):
        preceding = handles[max(0, handle.start() - 2) : handle.start()]
        is_tag = handle[0][1:] in _DOCUMENTATION_TAGS
        if preceding.endswith(" ") and preceding[0] not in "*\n " and not is_tag:
            yield handle[0]


def _may_be_name(words: str) -> bool:
    first, *others = words.split()
    if not others or others[-1] in _MONTHS:
        return False
    return not _WEEKDAYS.intersection((first, *others))


def is_written_small(name: str, tokens: Container[str]) -> bool:
    """Return True if a word of a name is also written small in the text: then it is a heading."""
    first, *others = name.split()
    if any(word.lower() in tokens for word in others):
        return True
    return first not in _NAME_OPENERS and first.lower() in tokens


class TokensOf:
    """The tokens of texts, to look up a few of them without reading the whole texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def __contains__(self, token: object) -> bool:
        return isinstance(token, str) and any(_has_token(text, token) for text in self._texts)


def _has_token(text: str, token: str) -> bool:
    start = text.find(token)
    while start >= 0:
        end = start + len(token)
        before = text[start - 1 : start] if start else ""
        if not _TOKEN.match(before) and not _TOKEN.match(text[end : end + 1]):
            return True
        start = text.find(token, end)
    return False


def lines_with(text: str, *pieces: str) -> str:
    """Return the lines that contain one of the pieces, as one text."""
    if "\n" not in text:
        return text if any(piece in text for piece in pieces) else ""
    found: dict[int, int] = {}
    for piece in pieces:
        at = text.find(piece)
        while at >= 0:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            found[text.rfind("\n", 0, at) + 1] = end
            at = text.find(piece, end)
    return "\n".join(text[start:end] for start, end in sorted(found.items()))


def command_lines(commands: Iterable[str]) -> Iterator[str]:
    """Yield the first line of each command of several words; the lines after it are its input."""
    for command in commands:
        line = command.strip().partition("\n")[0].strip()
        if len(line) in _COMMAND_LENGTHS and " " in line:
            yield line


# The patterns of numbers begin with a digit and the code looks back from there: a pattern that
# begins with an optional sign or a word would be tried at every character of the text.


def _find_grouped(text: str) -> Iterator[str]:
    for found in _GROUPED.finditer(text):
        start = found.start()
        if start and text[start - 1] in _CURRENCIES:
            start -= 1
        if not start or text[start - 1] not in "0123456789.,":
            yield text[start : found.end()]


def _find_quantities(text: str) -> Iterator[str]:
    for found in _QUANTITY.finditer(text):
        if found[1] in _UNIT_WORDS and _begins_anew(text, found.start()):
            yield found[0]


def _find_counted(text: str) -> Iterator[str]:
    """Yield numbers with a counting word of an unspaced script."""
    if text.isascii():
        return
    other = "\n".join(line for line in text.split("\n") if not line.isascii())
    for found in _COUNTED.finditer(other):
        if _begins_anew(other, found.start(), after_letters=True):
            yield found[0]


def _find_labelled(text: str) -> Iterator[str]:
    """Yield whole numbers with the label before them, such as `port 8080`."""
    for found in _INTEGER.finditer(text):
        start = found.start()
        if text[start - 1 : start] in _LABEL_JOINTS:
            span = max(0, start - _LABEL_SPAN)
            label = _LABEL_BEFORE.search(text[span:start].rstrip(" "))
            if label and label[1].lower() in _LABELS:
                yield text[span + label.start() : found.end()]


def _find_dates(text: str) -> Iterator[str]:
    yield from _MONTH_FIRST.findall(text)
    for found in _DAY_FIRST.finditer(text):
        is_day = found[2] in _MONTHS and int(found[1]) in _DAYS_OF_MONTH
        if is_day and _begins_anew(text, found.start()):
            yield found[0]
    yield from _HOUR.findall(lines_with(text, *_HALVES_OF_DAY))
    yield from _UNSPACED_DAY.findall(lines_with(text, "年", "月"))


def _begins_anew(text: str, start: int, *, after_letters: bool = False) -> bool:
    """Return False if the text before `start` continues there.

    With `after_letters`, a letter of an unspaced script may stand before it.
    """
    before = text[start - 1] if start else " "
    if after_letters:
        return not (before.isascii() and (before.isalnum() or before in "._-"))
    return not (before.isalnum() or before in "._-")


def _find_errors(text: str) -> Iterator[str]:
    """Yield status codes with the word before them, and error messages with the error's name."""
    yield from _STATUS.findall(lines_with(text, *_STATUS_WORDS))
    lines = lines_with(text, "Error: ", "Exception: ")
    for found in _ERROR_MESSAGE.finditer(lines):
        start, end = found.span()
        while start and (lines[start - 1].isalnum() or lines[start - 1] in "._"):
            start -= 1
        if found.end(1) - found.start(1) > _MAX_MESSAGE_LENGTH:
            end = lines.rfind(" ", found.start(1), end)
        message = lines[start : max(end, start)].rstrip(" .,:;'`-(")
        has_name = lines[start].isupper() or "." in lines[start : found.start()]
        if has_name and found.start(1) - start < len(message) <= MAX_ITEM_LENGTH:
            yield message


def _find_commands(text: str) -> Iterator[str]:
    yield from command_lines(_PROMPT.findall(lines_with(text, "$ ")))
    for found in _INLINE_COMMAND.findall(lines_with(text, "`")):
        if found.partition(" ")[0] in _PROGRAMS:
            yield from command_lines([found])


PHRASE_FINDERS: tuple[tuple[ItemClass, Callable[[str], Iterator[str]]], ...] = (
    ("number", _find_grouped),
    ("number", _find_quantities),
    ("number", _find_labelled),
    ("number", _find_counted),
    ("date", _find_dates),
    ("error", _find_errors),
    ("command", _find_commands),
)
