"""Items: what of a text must be kept exactly, by class.

A text is read in two ways. Cut at blanks, quotes and brackets it falls into chunks, most of which
are words; each distinct one is looked at once. What consists of several words (a quantity, a day,
a person's name, a command) is looked for in the lines, of which each distinct one is read once.
"""

from __future__ import annotations

import errno
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, TypeAlias

from enfold.errors import InputError
from enfold.jsontext import loads
from enfold.messages import Attachment, Data, Message, Part, Text, ToolCall, ToolResult

Class: TypeAlias = Literal[
    "path", "url", "identifier", "number", "date", "name", "error", "command"
]
CLASSES: tuple[Class, ...] = (
    "path",
    "url",
    "identifier",
    "number",
    "date",
    "name",
    "error",
    "command",
)

_WORDS = tomllib.loads(files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))


def _words(name: str) -> frozenset[str]:
    """A list of `words.toml`, where it is explained."""
    return frozenset(_WORDS[name].split())


_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3000-\u30ff\u3100-\u312f\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
"""Scripts without blanks between words, and their punctuation: an item ends where they begin."""

COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
"""What tells a terminal how to show a text. A bare escape takes its place, which ends an item."""
CHUNK = re.compile(rf"""[^\s\x1b"'`,;(){{}}\[\]<>|“”‘’«»…•·→│─━═{_UNSPACED}]++""")
"""A run of characters that may be an item, or hold some."""
ESCAPE = re.compile(r"\\+(?:[nrt]|u[0-9a-fA-F]{4})?")
"""What is left of line breaks and letters in a text that was written as JSON."""
JOINT = re.compile(r"(?:->|=>|[=:+&?!*^~#%@$])+")
"""What may stand between the items of one chunk."""
LEFT_EDGE = "*:!?=+^&%"
RIGHT_EDGE = "*:!?=+^&.~-"

# Files and addresses

FILE_ENDINGS = _words("file_endings")
PATH_ENDINGS = FILE_ENDINGS | _words("path_endings")
ROOTS = _words("roots")
DOMAINS = _words("domains")
MORE_DOMAINS = DOMAINS | _words("more_domains")
SEGMENT = re.compile(r"[\w.@+~*$%-]++")
WINDOWS_PATH = re.compile(r"[A-Za-z]:\\{1,2}[\w.@+~$-]++(?:\\{1,2}[\w.@+~$-]++)*+")
LINE_NUMBER = re.compile(
    r"(?:(?<=\.[a-z])|(?<=\.[a-z]{2})|(?<=\.[a-z]{3})|(?<=\.[a-z]{4}))-\d++(?:-.*+)?$"
)
"""What searches put behind a path."""
URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,15}+://\w[\w.-]*+(?::\d++)?(?:[/?#]\S*+)?")
EMAIL = re.compile(r"[\w+-]++(?:\.[\w+-]++)*+@[\w-]++(?:\.[\w-]++)*?\.[A-Za-z]{2,}+")

# What code calls things

ERROR_CODES = frozenset(errno.errorcode.values()) | _words("signals")
HUMPS = re.compile(
    r"[a-z]++(?:[A-Z]++[a-z]++)++[A-Z]*+|(?:[A-Z]++[a-z]++){2,}+[A-Z]*+|[A-Z]{3,}+[a-z]{2,}+"
)
"""A word of letters alone, written as only code writes one."""
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
CODE = re.compile(
    r"(?P<error>(?:[a-z_]\w*+\.)*+[A-Z][A-Za-z]*?(?:Error|Exception)"
    r"|ERR_[A-Z][A-Z0-9_]++|(?:TS|CS|CA|MSB|LNK|SC|PLR|RUF|E|F|W)\d{3,5}|ORA-\d{5})"
    rf"|(?P<identifier>{_UUID}|#\d{{2,7}}|[A-Z][A-Z0-9]{{1,9}}-\d{{1,7}}|CVE-\d{{4}}-\d{{4,7}}"
    r"|v\d++(?:\.\d++)++(?:[-+.][\w.+-]*+)?"
    r"|--[a-z][\w-]++"
    r"|(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{4,12}"
    r"|(?=[a-z.-]*\d)[a-z][a-z0-9]*+(?:[.-][a-z0-9]++)++)"
)
"""What holds more than letters and does not begin with a digit."""
HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}+")
MIXED = re.compile(r"(?=[^\d]*\d)(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z0-9_-]{8,31}+")
"""A made-up id: digits, small letters and capitals."""
DOTTED = re.compile(r"[A-Za-z_$][\w$]*+(?:\.[A-Za-z_$][\w$]*+)*+")
TELLING = re.compile(r"[^\W_]{2}_+[^\W_]|[^\W_]_+[^\W_]{2}|[a-z0-9][A-Z][a-z]|[A-Z]{2}[a-z]{2}")
"""What shows that a word with dots or underscores is code's."""

# Numbers and times

_AMOUNT = r"\d(?:[\d,.]*\d)?+"
_UNITS = (
    "ms|µs|us|ns|secs?|mins?|hrs?|[KMGTP]i?B|[kKMGT]b|kbps|[MG]bps|px|pt|r?em|vh|vw|dpi|fps|rpm|km|"
    "cm|mm|µm|nm|kg|mg|lbs?|oz|ml|°[CF]?|[kMG]?Hz|kWh?|mAh|[kKMB]|bn|x|%|‰|USD|EUR|GBP|CHF|JPY|CNY"
)
_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:[.,]\d++)?)?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
NUMERIC = re.compile(
    r"(?P<date>"
    r"(?:19|20)\d\d-[01]\d-[0-3]\d(?:[T_]\d\d(?::?\d\d){0,2}(?:\.\d++)?(?:Z|[+-]\d\d:?\d\d)?)?"
    rf"|(?:19|20)\d\d/[01]?\d/{_DAY}|{_DAY}[/.]{_DAY}[/.](?:19|20)\d\d"
    rf"|{_CLOCK}(?:am|pm|AM|PM|Z|h)?|\d{{1,2}}(?:am|pm|AM|PM))"
    rf"|(?P<identifier>{_UUID}|\d++\.\d++\.\d++(?:[-+.][\w.+-]*+)?)"
    r"|(?P<number>[$€£¥₹](?:\d\d[\d,.]*+|\d\.\d++)(?:[kKMB]|bn)?"
    rf"|[-+~≈±]?{_AMOUNT}(?:{_UNITS})(?:/(?:s|sec|min|h|hr|d|day|week|mo|month|yr|year))?"
    r"|[-+~≈±]?(?:[1-9]\d{0,2}|\d+\.\d+)[smh]|[-+~≈±]?[1-9]\d?d)"
)
"""What begins with a digit, a sign, or a currency's sign."""
MONEY = re.compile(r"[$€£¥₹]\d{1,3}(?:,\d{3})++(?:\.\d{1,4}+)?(?![\d,])")
"""With commas, at which chunks are cut."""
QUANTITY = re.compile(r"\d(?:[\d,.]{0,20}\d)?+[ \u00a0-]?(%|°[CF]|[^\W\d_]{1,12}+)")
"""A number and the word after it, which is a unit if it is one of these."""
UNIT_WORDS = _words("units")
_COUNTERS = "|".join(sorted(_words("counters"), key=len, reverse=True))
COUNTED = re.compile(rf"\d(?:[\d,.]{{0,20}}\d)?+ ?(?:{_COUNTERS}){{1,3}}+")
_MONTHS = (
    "Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|"
    "Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?|"
    "Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
)
MONTH_FIRST = re.compile(
    rf"(?:{_MONTHS})\.? {_DAY}(?:st|nd|rd|th)?(?!\d)(?:,? (?:19|20)\d\d)?(?!\w)"
)
DAY_FIRST = re.compile(
    r"(\d{1,2})(?:st|nd|rd|th|er|\.)? (?:de |of )?([^\W\d_]{3,11}+)"
    r"(?:,? (?:de )?(?:19|20)\d\d(?!\d))?"
)
"""A number and the word after it, which is a month if it is one of these."""
MONTHS = _words("months")
UNSPACED_DAY = re.compile(r"\d{4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|\d{1,2}月\d{1,2}[日号]")
HOUR = re.compile(rf"(?<![\w.:]){_CLOCK} (?:[ap]\.?m\b|[AP]M\b)")

# Faults and commands

EXIT = re.compile(
    r"(?:[Ee]xit(?:ed with)? (?:code|status)|[Ss]tatus(?: code)?|HTTP(?:/\d\.\d)?|[Ee]rrno"
    r"|[Ee]rror code)[ :=]{1,2}-?\d{1,5}(?!\w)"
)
FAULT = re.compile(r"(?:Error|Exception): ([^\n\r\"\\{}$%]{4,81})")
PROMPT = re.compile(r"^[ \t]*+\$ (?=[a-z./])([^\n]{2,200})$", re.MULTILINE)
INLINE = re.compile(r"`([a-z][\w.-]{0,40}+ [^`\n]{1,160})`")
PROGRAMS = _words("programs")

# Names

_CAPITAL = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĒĘĚĞĢĪİĶŁĻŃŅŇŐŘŚŞŠŢŤŪŮŰŹŻŽА-ЯЁΑ-Ω"
_SMALL = "a-zß-öø-ÿāăąćčďđēęěğģīıķłļńņňőřśşšţťūůűźżžа-яёα-ωά-ώ"
_NAME = rf"[{_CAPITAL}][{_SMALL}]++(?:[-'’][{_CAPITAL}][{_SMALL}]++)?+"
NAMES = re.compile(
    rf"{_NAME}(?: (?:(?:de|van|von|der|da|del|la|di|bin|al|dos) )?"
    rf"(?:{_NAME}|[{_CAPITAL}]\.)){{1,3}}(?![\w-])"
)
HANDLE = re.compile(r"@[a-z][A-Za-z0-9-]{2,38}+(?![\w/.(@])")
OPENERS = _words("openers")
WEEKDAYS = _words("weekdays")
BEGINNINGS = _words("beginnings")
TAGS = _words("tags")

# Keys

SECRET = re.compile(
    r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk)[-_][\w-]{12,}|gh[pousr]_\w{16,}|github_pat_\w+|glpat-[\w-]+|xox[abeprs]-[\w-]+"
    r"|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,}|eyJ[\w-]{8,}|hf_\w{16,}|npm_\w{16,}|ya29\.\S+|SG\.\S{16,})"
)
"""How keys begin."""
_ASSIGNMENT = r"[\"'\\]{0,3}[ \t]?[:=][ \t]?[\"'\\]{0,3}(?:Bearer |Basic )?"
ASSIGNED = re.compile(
    r"(?:[Ss]ecret|SECRET|[Pp]assw(?:or)?d|PASSW(?:OR)?D|[Cc]redentials?|[Aa]uthorization)"
    rf"{_ASSIGNMENT}([^\s\"',;)}}\]&]{{6,200}}+)"
    r"|Bearer ([^\s\"',;)}\]&]{12,200}+)|(?:-u|--user)[ =][\"']?[^\s:\"']{1,60}+:([^\s\"']{4,200}+)"
    rf"|(?:[Kk]ey|KEY|[Tt]oken|TOKEN|[Ss]ig(?:nature)?){_ASSIGNMENT}"
    r"((?=[^\s\d]{0,200}\d)(?=[^\sA-Za-z]{0,200}[A-Za-z])[^\s\"',;)}\]&/.]{12,200}+)"
)
"""A value that is called a key, a token or a password."""


LONGEST = 200
"""Characters of an item; what is longer is content, not a name for something."""
_LONGEST_CHUNK = 2_000
_SHORTEST = 2
_SHORTEST_PIECE = 3
_FEW = 2


def in_chunk(chunk: str) -> Iterator[tuple[Class, str]]:
    """The items of one chunk: the whole of it, or what stands between its joints."""
    if (
        len(chunk) < _SHORTEST
        or len(chunk) > _LONGEST_CHUNK
        or (chunk.isalpha() and chunk.islower())
    ):
        return
    if "\\" in chunk and not WINDOWS_PATH.fullmatch(chunk):
        for part in ESCAPE.split(chunk):
            yield from in_chunk(part)
        return
    core = chunk.lstrip(LEFT_EDGE).rstrip(RIGHT_EDGE)
    if "/" in core:
        core = LINE_NUMBER.sub("", core)
    if len(core) < _SHORTEST:
        return
    kind = _class_of(core)
    if kind is None:
        yield from _between_joints(core)
    elif len(core) <= LONGEST:
        yield kind, core


def _between_joints(core: str) -> Iterator[tuple[Class, str]]:
    if core.isalnum() or ("://" in core and "@" in core):  # an address with a password in it
        return
    pieces = JOINT.split(core)
    for piece in pieces if len(pieces) > 1 else ():
        inner = piece.strip(".-/")
        if _SHORTEST_PIECE <= len(inner) <= LONGEST and (kind := _class_of(inner)) is not None:
            yield kind, inner


def _class_of(core: str) -> Class | None:
    """What it is as a whole. None for a word, and for what holds several things."""
    if core.isalpha():
        return _class_of_word(core)
    if core.isdigit():
        return None
    if "://" in core:
        return "url" if URL.fullmatch(core) else None
    if "@" in core and EMAIL.fullmatch(core):
        return "name"
    if core[0].isdigit() or core[0] in "$€£¥₹+-~≈±":
        found = NUMERIC.fullmatch(core)
        if found:
            return _class_named(found.lastgroup)
    if "/" in core or "\\" in core:
        return "path" if _is_path(core) else None
    return _class_of_code(core) if core.isascii() else None


def _class_of_word(word: str) -> Class | None:
    if word.islower() or not word.isascii():
        return None
    if word.isupper():
        return "error" if word in ERROR_CODES else None
    if not HUMPS.fullmatch(word):
        return None
    names_an_error = word.endswith(("Error", "Exception")) and word[0].isupper()
    return "error" if names_an_error else "identifier"


def _class_of_code(core: str) -> Class | None:
    """Of what holds letters and other signs, but no slash."""
    stem, dot, ending = core.rpartition(".")
    if dot and ending in FILE_ENDINGS and SEGMENT.fullmatch(stem):
        return "path" if _is_file(stem, ending) else None
    found = CODE.fullmatch(core)
    if found:
        return _class_named(found.lastgroup)
    if HASH.fullmatch(core) or MIXED.fullmatch(core):
        return "identifier"
    return _class_of_dotted(core) if DOTTED.fullmatch(core) else None


def _class_of_dotted(core: str) -> Class | None:
    """Of words joined by dots or underscores, as code has them."""
    words = core.split(".")
    domains = DOMAINS if len(words) == _FEW else MORE_DOMAINS
    if len(words) > 1 and words[-1] in domains and core.islower() and "_" not in core:
        return "url"
    if TELLING.search(core):
        return "identifier"
    return "identifier" if len(words) > _FEW and min(map(len, words)) > 1 else None


def _is_file(stem: str, ending: str) -> bool:
    """Whether it is a file's name: not `Node.js`, not an attribute of one letter."""
    if not any(map(str.isalpha, stem)):
        return False
    if ending == "js" and stem[0].isupper() and stem.isalpha():
        return False
    return len(ending) > 1 or len(stem) > _FEW


def _is_path(core: str) -> bool:
    if "\\" in core:
        return WINDOWS_PATH.fullmatch(core) is not None
    first, *rest = core.removesuffix("/").split("/")
    anchored = first in {"", ".", "..", "~"}
    segments = rest if anchored else [first, *rest]
    if not segments or not all(map(SEGMENT.fullmatch, segments)):
        return False
    if not any(map(str.isalpha, core)):
        return False
    _, dot, ending = segments[-1].rpartition(".")
    if dot and ending in PATH_ENDINGS:
        return True
    if anchored:
        return len(segments) > 1 or first in {".", "..", "~"}
    if segments[0] in ROOTS:
        return len(segments) > 1 and segments[1][0].isalpha()
    return len(segments) > _FEW and any(set(each) & set("._-0123456789") for each in segments)


def _class_named(name: str | None) -> Class | None:
    return next((each for each in CLASSES if each == name), None)


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
    yield from MONEY.findall(text)
    for found in QUANTITY.finditer(text):
        if found[1] in UNIT_WORDS and _begins_anew(text, found.start()):
            yield found[0]
    if text.isascii():
        return
    other = "\n".join(line for line in text.split("\n") if not line.isascii())
    for found in COUNTED.finditer(other):
        if _begins_anew(other, found.start(), letters=True):
            yield found[0]


def _days(lines: Lines) -> Iterator[str]:
    text = lines.text
    yield from MONTH_FIRST.findall(text)
    for found in DAY_FIRST.finditer(text):
        is_day = found[2] in MONTHS and int(found[1]) in _DAYS_OF_A_MONTH
        if is_day and _begins_anew(text, found.start()):
            yield found[0]
    yield from HOUR.findall(lines.with_any(*_HALVES_OF_A_DAY))
    yield from UNSPACED_DAY.findall(lines.with_any("年", "月"))


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
    yield from EXIT.findall(lines.with_any(*_FAULTS))
    text = lines.with_any("Error: ", "Exception: ")
    for found in FAULT.finditer(text):
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
    for found in NAMES.finditer(text):
        name = _without_opener(found[0])
        if _stands_alone(text, found.start()) and _is_name(name, lines.words):
            yield name
    text = lines.with_any(" @")
    for handle in HANDLE.finditer(text):
        before = text[max(0, handle.start() - 2) : handle.start()]
        is_tag = handle[0][1:] in TAGS
        if before.endswith(" ") and before[0] not in "*\n " and not is_tag:
            yield handle[0]


def _stands_alone(text: str, start: int) -> bool:
    before = text[start - 1] if start else " "
    return not (before.isalnum() or before in "_./#@&-")


def _without_opener(words: str) -> str:
    """The words without one that a sentence begins with."""
    first, _, rest = words.partition(" ")
    return rest if first in OPENERS else words


def _is_name(words: str, known: AbstractSet[str]) -> bool:
    """Two words or more of which none is written small elsewhere: headings are not names."""
    first, *others = words.split()
    if not others or any(word.lower() in known for word in others):
        return False
    if WEEKDAYS.intersection((first, *others)) or others[-1] in MONTHS:
        return False
    return first in BEGINNINGS or first.lower() not in known


def _commands(lines: Lines) -> Iterator[str]:
    yield from commands(PROMPT.findall(lines.with_any("$ ")))
    for found in INLINE.findall(lines.with_any("`")):
        if found.partition(" ")[0] in PROGRAMS:
            yield from commands([found])


_FINDERS: tuple[tuple[Class, Callable[[Lines], Iterator[str]]], ...] = (
    ("number", _quantities),
    ("date", _days),
    ("error", _faults),
    ("name", _names),
    ("command", _commands),
)


_TELLING = (
    *("ecret", "ECRET", "assw", "ASSW", "redential", "uthorization", "earer "),
    *("key", "Key", "KEY", "oken", "TOKEN", "ignature", "sig", "Sig", "-u", "--user"),
)
_BORDER = re.compile(r"[\s\"'`=:&?/@,;]+")


class Secrets:
    """What in some lines is secret: by how it begins, or by what it is called there."""

    def __init__(self, lines: Lines) -> None:
        found = ASSIGNED.findall(lines.with_any(*_TELLING))
        self._values = frozenset(value for values in found for value in values if value)
        self._all = "\n".join(sorted(self._values))

    def hold(self, item: str) -> bool:
        """True if the item is a secret, is a part of one, or has one in it."""
        if SECRET.search(item):
            return True
        if not self._values:
            return False
        return item in self._all or not self._values.isdisjoint(_BORDER.split(item))


_COMMAND_FIELDS = frozenset({"cmd", "command", "commands", "script"})
_JSON_EDGES = frozenset({("{", "}"), ("[", "]")})


def texts(messages: Iterable[Message]) -> Iterator[str]:
    """All that the messages say, piece by piece."""
    for message in messages:
        for part in message.parts:
            yield from _texts(part)


def commands_called(messages: Iterable[Message]) -> Iterator[str]:
    """What tools that run commands were told to run."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                given = _arguments(part)
                fields = given.items() if isinstance(given, Mapping) else ()
                for name, value in fields:
                    if name in _COMMAND_FIELDS:
                        yield from _strings(value)


def _texts(part: Part) -> Iterator[str]:
    match part:
        case Text(text):
            yield from _strings(_value(text))
        case ToolCall():
            yield from _strings(_arguments(part))
        case ToolResult(parts=inner):
            for each in inner:
                yield from _texts(each)
        case Data(value):
            yield from _strings(value)
        case Attachment(name=name, url=url):
            yield from filter(None, (name, url))


def _arguments(call: ToolCall) -> Any:
    return _value(call.arguments) if isinstance(call.arguments, str) else call.arguments


def _value(text: str) -> Any:
    """The value, if the text is a JSON object or array; otherwise the text."""
    bare = text.strip()
    if (bare[:1], bare[-1:]) not in _JSON_EDGES:
        return text
    try:
        return loads(bare)
    except InputError:
        return text


def _strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value; texts that are JSON are read in their turn."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            inner = _value(each) if each is not value else each
            if isinstance(inner, str):
                yield inner
            else:
                waiting.append(inner)
        elif isinstance(each, Mapping):
            waiting.extend(reversed(list(each.values())))
        elif isinstance(each, list | tuple):
            waiting.extend(reversed(each))


Items: TypeAlias = dict[Class, dict[str, None]]
"""Distinct items of each class, in the order in which they come up."""


def extract(text: str) -> Items:
    """The distinct exact items of a text. Keys, tokens and passwords are none."""
    found: Items = {name: {} for name in CLASSES}
    plain = COLOUR.sub("\x1b", text) if "\x1b" in text else text
    distinct = "\n".join(dict.fromkeys(plain.split("\n")))
    chunks = dict.fromkeys(CHUNK.findall(distinct))
    lines = Lines(distinct, chunks.keys())
    secrets = Secrets(lines)
    for chunk in chunks:
        for kind, item in in_chunk(chunk):
            if not secrets.hold(item):
                found[kind][item] = None
    for kind, item in in_lines(lines):
        if not secrets.hold(item):
            found[kind][item] = None
    return found


def items_of(messages: Sequence[Message]) -> Items:
    """The distinct exact items of what messages say."""
    called = "\n".join(f"$ {line}" for line in commands(commands_called(messages)))
    return extract("\n".join((*texts(messages), called)))
