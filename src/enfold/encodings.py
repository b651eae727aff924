"""Encodings: other ways to write the same text, each with the way back.

They take out what costs tokens and tells a model nothing. An encoding is used on a text only if
decoding gives back exactly what it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, count, groupby, pairwise, product
from operator import eq
from typing import Any, TypeAlias

from enfold.errors import RestoreError

_FEWEST = 3
_LEAST_CHARACTERS = 60
"""Minimum number of removed characters for a marker."""
_BLANKS = re.compile(r"[ \t]+$", re.MULTILINE)


def encode_runs(text: str) -> tuple[str, Any] | None:
    """The text with a marker after each line that was repeated; where the markers are."""
    lines = text.split("\n")
    if not any(map(eq, lines, lines[1:])):
        return None
    shown: list[str] = []
    markers: list[list[int]] = []
    for line, group in groupby(lines):
        again = sum(1 for _ in group) - 1
        shown.append(line)
        if again + 1 >= _FEWEST and again * (len(line) + 1) >= _LEAST_CHARACTERS and line.strip():
            markers.append([len(shown), again])
            shown.append(f"⟨ the line above {again} more times ⟩")
        else:
            shown += [line] * again
    return ("\n".join(shown), markers) if markers else None


def decode_runs(text: str, how: Any) -> str:
    """The text with every line as often as it stood there."""
    lines = text.split("\n")
    was: list[str] = []
    at = 0
    for marker, again in how:
        was += lines[at:marker]
        was += [lines[marker - 1]] * again
        at = marker + 1
    return "\n".join([*was, *lines[at:]])


_VALUE_TAG = re.compile(r"<([A-Za-z][\w-]*)>([^<>]*)</\1>")
_OPEN_TAG = re.compile(r"<([A-Za-z][\w-]*)>")


def encode_tags(text: str) -> tuple[str, Any] | None:
    """The text with labels in place of the tags around it; how many lines, and whether one closes.

    Agents wrap the output of a command: `<returncode>0</returncode>` is the first line, and the
    rest stands between `<output>` and `</output>`.
    """
    if not text.startswith("<"):
        return None
    lines = text.split("\n")
    at = 0
    while at < len(lines) and (not lines[at] or _VALUE_TAG.fullmatch(lines[at])):
        lines[at] = _VALUE_TAG.sub(r"\1: \2", lines[at])
        at += 1
    opened = _OPEN_TAG.fullmatch(lines[at]) if at < len(lines) else None
    is_closed = opened is not None and at + 1 < len(lines) and lines[-1] == f"</{opened[1]}>"
    if opened is not None and is_closed:
        lines[at:] = [f"{opened[1]}:", *lines[at + 1 : -1]]
    return ("\n".join(lines), [at, is_closed]) if at or is_closed else None


def decode_tags(text: str, how: Any) -> str:
    """The text with its tags."""
    size, is_closed = how
    lines = text.split("\n")
    for at in range(size):
        if lines[at]:
            name, _, value = lines[at].partition(": ")
            lines[at] = f"<{name}>{value}</{name}>"
    if is_closed:
        name = lines[size].removesuffix(":")
        lines[size] = f"<{name}>"
        lines.append(f"</{name}>")
    return "\n".join(lines)


def encode_blanks(text: str) -> tuple[str, Any] | None:
    """The text without blanks at the end of lines; where they were, counted from the last ones."""
    if " \n" not in text and "\t\n" not in text and not text.endswith((" ", "\t")):
        return None
    cuts: list[list[Any]] = []
    end = 0
    for found in _BLANKS.finditer(text):
        cuts.append([found.start() - end, found[0]])
        end = found.end()
    return (_BLANKS.sub("", text), cuts) if cuts else None


def decode_blanks(text: str, how: Any) -> str:
    """The text with its blanks."""
    was: list[str] = []
    at = 0
    for distance, blanks in how:
        was += (text[at : at + distance], blanks)
        at += distance
    return "".join([*was, text[at:]])


_NAMES = re.compile(r"(?:^[^\s⟨⟩]{1,60}\n){3,}[^\s⟨⟩]{1,60}$", re.MULTILINE)
"""Lines that are one name each, as in the listing of a folder."""


def encode_lists(text: str) -> tuple[str, Any] | None:
    """Return the text with names on one line instead of one a line; where those lines are."""
    shown: list[str] = []
    joined: list[int] = []
    end = line = 0
    for found in _NAMES.finditer(text):
        before = text[end : found.start()]
        line += before.count("\n")
        joined.append(line)
        shown += (before, found[0].replace("\n", " "))
        end = found.end()
    return ("".join([*shown, text[end:]]), joined) if joined else None


def decode_lists(text: str, how: Any) -> str:
    """Return the text with one name a line."""
    lines = text.split("\n")
    for at in how:
        lines[at] = lines[at].replace(" ", "\n")
    return "\n".join(lines)


_PREFIX = re.compile(r"( *)(\d{1,9})([→\t|:-])")
_SOMEWHERE = re.compile(r"^ *\d{1,9}[→\t|:-]", re.MULTILINE)
_ARROW = "→"
_TAB = "\t"


@dataclass(frozen=True, slots=True)
class Run:
    """Lines numbered one after the other, all in one style."""

    start: int
    stop: int
    """Indexes of the lines: `lines[start:stop]`."""
    first: int
    """The number of the first line."""
    width: int
    """How wide the numbers are, padded with blanks on the left. 0: no wider than their digits."""
    separator: str
    """What stands between the number and the line."""


def is_numbered(text: str) -> bool:
    """Return True if any line may have a number; a quick check before a thorough one."""
    return _SOMEWHERE.search(text) is not None


def prefix(number: int, width: int, separator: str) -> str:
    """Return the prefix of a line with that number."""
    return f"{number:>{width}}{separator}"


def runs(lines: Sequence[str]) -> Iterator[Run]:
    """All runs of numbered lines, in order.

    One line alone is a run only with an arrow: other signs follow a number for other reasons.
    """
    at, size = 0, len(lines)
    while at < size:
        found = _PREFIX.match(lines[at])
        if found is None:
            at += 1
            continue
        padding, digits, separator = found.groups()
        following = lines[at + 1] if at + 1 < size else ""
        if separator != _ARROW and not following.lstrip(" ").startswith(str(int(digits) + 1)):
            at += 1
            continue
        run = Run(at, at + 1, int(digits), len(found[0]) - 1 if padding else 0, separator)
        if prefix(run.first, run.width, separator) != found[0]:  # a leading zero
            at += 1
            continue
        at = _end_of_run(lines, run)
        if at - run.start > 1 or separator == _ARROW:
            yield replace(run, stop=at)


def bodies(lines: Sequence[str], run: Run) -> list[str]:
    """The lines of a run without their numbers."""
    own = lines[run.start : run.stop]
    if run.width and run.first + len(own) <= 10**run.width:
        cut = run.width + 1
        return [line[cut:] for line in own]
    return [line.split(run.separator, 1)[1] for line in own]


def encode_line_numbers(text: str) -> tuple[str, Any] | None:
    """The text with bare numbers, and per run where it is and how it was."""
    if not is_numbered(text):
        return None
    lines = text.split("\n")
    changed: list[list[Any]] = []
    for run in runs(lines):
        shown = _TAB if run.separator == _ARROW else run.separator
        if run.width or shown != run.separator:
            changed.append([run.start, run.stop - run.start, run.width, run.separator])
            numbered = enumerate(bodies(lines, run), run.first)
            lines[run.start : run.stop] = [f"{number}{shown}{body}" for number, body in numbered]
    return ("\n".join(lines), changed) if changed else None


def decode_line_numbers(text: str, how: Any) -> str:
    """The text with its numbers as they were."""
    lines = text.split("\n")
    for start, size, width, separator in how:
        shown = _TAB if separator == _ARROW else separator
        parted = [line.partition(shown) for line in lines[start : start + size]]
        lines[start : start + size] = [
            f"{number:>{width}}{separator}{body}" for number, _, body in parted
        ]
    return "\n".join(lines)


def _end_of_run(lines: Sequence[str], run: Run) -> int:
    """Where the numbers stop counting; more lines at a time the longer they have gone on."""
    prefixes = map(f"%{run.width or ''}d{run.separator}".__mod__, count(run.first + 1))
    at = run.stop
    while at < len(lines):
        some = lines[at : 2 * at - run.start]
        going_on = list(map(str.startswith, some, prefixes))
        if not all(going_on):
            return at + going_on.index(False)
        at += len(some)
    return len(lines)


_HIT = re.compile(r"^([^\s:]*[/.][^\s:]*):[0-9]+:", re.MULTILINE)
_CONTEXT_LINE = re.compile(r"-(?=([0-9]{1,9})-)")
"""What follows the path of a line that a search shows beside a hit, and the line's number."""
_PATH = re.compile(r"(?:/|\./|~/|[\w.@-]+/)[^\s:*?\"'<>|()]*(?<!/)")
"""Of a file: what ends like a folder may be a heading."""
_FEWEST_PATHS = 3
_SHORTEST_FOLDER = 4
_INDENT = " "
_START = 40
"""Characters that tell a file with numbered lines, in which no line begins with a path."""

_Group: TypeAlias = tuple[int, int, str, bool]
"""Lines `[start, stop)` that begin with a path, and whether they are hits of a search."""


def encode_paths(text: str) -> tuple[str, Any] | None:
    """The text with headings, and where they are: `[line, lines under it, is a search]`."""
    if "/" not in text or is_numbered(text[:_START]):
        return None
    lines = text.split("\n")
    shown: list[str] = []
    headings: list[list[Any]] = []
    at = 0
    for start, stop, path, is_search in _groups(lines, _searched(text, lines)):
        shown += lines[at:start]
        headings.append([len(shown), stop - start, is_search])
        cut, indent = (len(path) + 1, "") if is_search else (len(path), _INDENT)
        shown += [path, *(indent + line[cut:] for line in lines[start:stop])]
        at = stop
    return ("\n".join([*shown, *lines[at:]]), headings) if headings else None


def decode_paths(text: str, how: Any) -> str:
    """The text with the paths where they were."""
    lines = text.split("\n")
    was: list[str] = []
    at = 0
    for heading, size, is_search in how:
        was += lines[at:heading]
        path = lines[heading]
        at = heading + 1 + size
        under = lines[heading + 1 : at]
        if is_search:
            was += [f"{path}{_sign_after_number(line)}{line}" for line in under]
        else:
            was += [path + line[len(_INDENT) :] for line in under]
    return "\n".join([*was, *lines[at:]])


def _searched(text: str, lines: Sequence[str]) -> set[str]:
    """The files that a search shows lines of: with hits, or with lines that count on."""
    found = set(_HIT.findall(text))
    for line, following in pairwise(lines):
        if _is_path(line) and _is_path(following):
            continue  # names with dates in them
        for sign in _CONTEXT_LINE.finditer(line):
            path = line[: sign.start()]
            if following.startswith(f"{path}-{int(sign[1]) + 1}-") and _is_path(path):
                found.add(path)
    return found


def _groups(lines: Sequence[str], searched: set[str]) -> Iterator[_Group]:
    """All lines that a heading pays for; `searched` are the files that a search shows lines of."""
    start = 0
    for found, group in groupby(lines, lambda line: _file_of(line, searched)):
        stop = start + sum(1 for _ in group)
        if isinstance(found, str):
            if stop - start > 1:
                yield start, stop, found, True
        elif found:
            yield from _folders(lines, start, stop)
        start = stop


def _file_of(line: str, searched: set[str]) -> str | bool:
    """The file in which the line is a hit, or stands beside one; else whether it is a path."""
    if searched:
        hit = _HIT.match(line)
        if hit is not None:
            return hit[1]
        for sign in _CONTEXT_LINE.finditer(line):
            if line[: sign.start()] in searched:
                return line[: sign.start()]
    return _is_path(line)


def _is_path(text: str) -> bool:
    return "/" in text and _PATH.fullmatch(text) is not None


def _sign_after_number(line: str) -> str:
    """A hit's sign is the same on both sides of its number."""
    return line.lstrip("0123456789")[0]


def _folders(lines: Sequence[str], start: int, stop: int) -> list[_Group]:
    """Group paths under their common folder or under one folder each: the shorter form."""
    apart: list[_Group] = []
    single = end = start
    for folder, group in groupby(lines[start:stop], _folder):
        begin, end = end, end + sum(1 for _ in group)
        if end - begin > 1 and len(folder) >= _SHORTEST_FOLDER:
            apart += [*_together(lines, single, begin), (begin, end, folder, False)]
            single = end
    apart += _together(lines, single, stop)
    return max(_together(lines, start, stop), apart, key=_gain)


def _together(lines: Sequence[str], start: int, stop: int) -> list[_Group]:
    """Paths under the folder that all are in, if that is one."""
    if stop - start < _FEWEST_PATHS:
        return []
    first, last = min(lines[start:stop]), max(lines[start:stop])
    same = next((at for at, sign in enumerate(first) if last[at] != sign), len(first))
    folder = _folder(first[:same])
    return [(start, stop, folder, False)] if len(folder) >= _SHORTEST_FOLDER else []


def _folder(path: str) -> str:
    return path[: path.rfind("/") + 1]


def _gain(groups: Sequence[_Group]) -> int:
    """The characters that headings save."""
    return sum((stop - start - 1) * len(path) - 2 - stop + start for start, stop, path, _ in groups)


_EDGES = re.compile(r"^(?:([\[{])|([\]}])|[\[{].{40,}[\]}])$", re.MULTILINE)
"""A line that opens JSON, one that closes it, or one that may hold all of it."""
_FEWEST_ROWS = 3
_INDENTED: tuple[tuple[Any, bool], ...] = tuple((by, False) for by in (2, 4, "\t", 3, 1))
_ON_ONE_LINE: tuple[tuple[Any, bool], ...] = ((None, True), (None, False))
"""The usual ways to write JSON: what lines are indented by, and whether blanks are left out."""
_COMPACT = (",", ":")


def encode_json(text: str) -> tuple[str, Any] | None:
    """Every JSON block of the text on one line, and how each was written."""
    return _encode(text, as_tables=False)


def encode_tables(text: str) -> tuple[str, Any] | None:
    """Arrays of like objects as tables, and where each stands."""
    return _encode(text, as_tables=True)


def decode_json(text: str, how: Any) -> str:
    """The JSON as it was written."""
    was: list[str] = []
    at = 0
    for start, stop, style, tables in how:
        value = json.loads(text[start:stop])
        for path in reversed(tables):
            value = _replaced(value, path, _rows_as_objects)
        was += (text[at:start], _write(value, style))
        at = stop
    return "".join([*was, text[at:]])


def _encode(text: str, *, as_tables: bool) -> tuple[str, Any] | None:
    shown: list[str] = []
    changed: list[list[Any]] = []
    end = length = 0
    for start, stop in _blocks(text):
        found = _encode_block(text[start:stop], as_tables=as_tables)
        if found is None:
            continue
        block, style, tables = found
        shown += (text[end:start], block)
        length += start - end
        changed.append([length, length + len(block), style, tables])
        length += len(block)
        end = stop
    return ("".join([*shown, text[end:]]), changed) if changed else None


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Where JSON may be: from a line that opens it to the one that closes it, or on one line."""
    if not text.startswith(("{", "[")) and "\n{" not in text and "\n[" not in text:
        return
    opened: int | None = None
    for found in _EDGES.finditer(text):
        if found[1]:
            opened = found.start()
        elif not found[2]:
            yield found.span()
        elif opened is not None:
            yield opened, found.end()
            opened = None


def _encode_block(block: str, *, as_tables: bool) -> tuple[str, Any, list[Any]] | None:
    value = _value(block)
    style = None if value is None else _style(block, value)
    if value is None or style is None:
        return None
    tables: list[Any] = []
    if as_tables:
        for path in list(_like_objects(value, [])):
            tables.append(path)
            value = _replaced(value, path, _objects_as_rows)
        if not tables:
            return None
        return _write(value, style), style, tables
    has_surrogates = "\\ud" in block.lower()  # which only escapes can carry safely
    compact = _write(value, {"indent": None, "tight": True, "ascii": has_surrogates})
    return (compact, style, []) if len(compact) < len(block) else None


def _value(block: str) -> Any:
    """The array or object that a text is; None if it is none."""
    try:
        value = json.loads(block)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _style(block: str, value: Any) -> dict[str, Any] | None:
    """How the block was written, if one of the usual ways gives the same text."""
    layouts = _INDENTED if "\n" in block else _ON_ONE_LINE
    escapings = (False, True) if "\\u" in block else (False,)
    for (indent, tight), is_ascii in product(layouts, escapings):
        style = {"indent": indent, "tight": tight, "ascii": is_ascii}
        if _write(value, style) == block:
            return style
    return None


def _write(value: Any, style: Any) -> str:
    indent, tight = style["indent"], style["tight"]
    separators = _COMPACT if tight else (",", ": ") if indent is not None else (", ", ": ")
    return json.dumps(value, indent=indent, separators=separators, ensure_ascii=style["ascii"])


def _like_objects(value: Any, path: list[Any]) -> Iterator[list[Any]]:
    """The paths of all arrays of objects with the same keys; not of arrays inside those."""
    if isinstance(value, list):
        if _are_alike(value):
            yield path
            return
        items: Any = enumerate(value)
    elif isinstance(value, dict):
        items = value.items()
    else:
        return
    for key, item in items:
        yield from _like_objects(item, [*path, key])


def _are_alike(items: list[Any]) -> bool:
    if len(items) < _FEWEST_ROWS or not isinstance(items[0], dict) or not items[0]:
        return False
    keys = list(items[0])
    return all(isinstance(item, dict) and list(item) == keys for item in items)


def _objects_as_rows(items: Any) -> Any:
    return {"columns": list(items[0]), "rows": [list(item.values()) for item in items]}


def _rows_as_objects(table: Any) -> Any:
    columns = table["columns"]
    return [dict(zip(columns, row, strict=True)) for row in table["rows"]]


def _replaced(value: Any, path: list[Any], change: Any) -> Any:
    """The value with what stands at the path changed."""
    if not path:
        return change(value)
    key, *rest = path
    if isinstance(value, list):
        return [*value[:key], _replaced(value[key], rest, change), *value[key + 1 :]]
    return {**value, key: _replaced(value[key], rest, change)}


_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def encode_colours(text: str) -> tuple[str, Any] | None:
    """The text without escape sequences; where each was, counted from the one before it."""
    if "\x1b[" not in text:
        return None
    pieces = _CODE.split(text)
    codes = _CODE.findall(text)
    if not codes:
        return None
    distinct = list(dict.fromkeys(codes))
    numbers = {code: number for number, code in enumerate(distinct)}
    places = [[len(piece), numbers[code]] for piece, code in zip(pieces, codes, strict=False)]
    return "".join(pieces), {"codes": distinct, "at": places}


def decode_colours(text: str, how: Any) -> str:
    """The text with its escape sequences."""
    ends = list(accumulate(length for length, _ in how["at"]))
    starts = [0, *ends]
    pieces = (text[start:end] for start, end in zip(starts, ends, strict=False))
    codes = (how["codes"][number] for _, number in how["at"])
    pairs = zip(pieces, codes, strict=True)
    return "".join(chain.from_iterable(pairs)) + text[starts[-1] :]


def encode_progress(text: str) -> tuple[str, Any] | None:
    """Return the last state of every line; overwritten text is stored for decoding."""
    if "\r" not in text:
        return None
    lines = text.split("\n")
    overwritten: list[list[Any]] = []
    for at, line in enumerate(lines):
        cut = line.rfind("\r", 0, len(line.rstrip("\r"))) + 1
        if cut:
            overwritten.append([at, line[:cut]])
            lines[at] = line[cut:]
    return ("\n".join(lines), overwritten) if overwritten else None


def decode_progress(text: str, how: Any) -> str:
    """The text with what was written over."""
    lines = text.split("\n")
    for at, before in how:
        lines[at] = before + lines[at]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Encoding:
    """One way to write a text, and back."""

    encode: Callable[[str], tuple[str, Any] | None]
    """The text anew and what the way back needs, as JSON; None where there is nothing to gain."""
    decode: Callable[[str, Any], str]


ENCODINGS: Mapping[str, Encoding] = {
    "tags": Encoding(encode_tags, decode_tags),
    "colours": Encoding(encode_colours, decode_colours),
    "progress": Encoding(encode_progress, decode_progress),
    "blanks": Encoding(encode_blanks, decode_blanks),
    "json": Encoding(encode_json, decode_json),
    "tables": Encoding(encode_tables, decode_json),
    "paths": Encoding(encode_paths, decode_paths),
    "lists": Encoding(encode_lists, decode_lists),
    "line_numbers": Encoding(encode_line_numbers, decode_line_numbers),
    "runs": Encoding(encode_runs, decode_runs),
}
"""By name, in the order in which they are applied."""


def encode(name: str, text: str) -> tuple[str, Any] | None:
    """The text in that encoding and what `decode` needs; None where it does not help."""
    encoding = ENCODINGS[name]
    found = encoding.encode(text)
    if found is None or len(found[0]) > len(text) or encoding.decode(*found) != text:
        return None
    return found if found[0].strip() else None  # wires have no way to say an empty text


def decode(name: str, text: str, how: Any) -> str:
    """The text as it was before; `RestoreError` if it cannot have been encoded so."""
    try:
        return ENCODINGS[name].decode(text, how)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise RestoreError(
            f"the encoding {name!r} cannot be undone ({type(error).__name__})"
        ) from None
