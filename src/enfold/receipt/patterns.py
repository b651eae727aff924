"""Patterns: what the exact items of each class look like, as tables and expressions.

They are conservative: better to miss an item than to take a word for one, because what is taken for
an item counts as lost where a summary says it otherwise. None looks beyond a line. Repetitions are
possessive (`++`) wherever giving back could not help, so that reading stays linear on any text.
"""

from __future__ import annotations

import errno
import re
import tomllib
from importlib.resources import files
from typing import Literal, TypeAlias

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
