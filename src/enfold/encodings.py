"""Encodings: other ways to write the same text, each with the way back.

They take out what costs tokens and tells a model nothing. An encoding is used on a text only if
decoding gives back exactly what it was.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, count, groupby, islice, pairwise, product, takewhile
from operator import eq
from typing import Any, TypeAlias

from enfold.errors import RestoreError

_FEWEST = 3
_LEAST_CHARACTERS = 60
"""Minimum number of removed characters for a marker."""
_BLANKS = re.compile(r"(?m)(^ *\d{1,9}\t$)|(?<![ \t])[ \t]+$")
"""Blanks at the end of a line. The group is the number of an empty line, which stays."""


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
    """The text with labels in place of the tags around it; how many lines, and the tag of the rest.

    Agents wrap the output of a command: `<returncode>0</returncode>` is the first line, and the
    rest stands between `<output>` and `</output>`, which tell nothing.
    """
    if not text.startswith("<"):
        return None
    lines = text.split("\n")
    at = 0
    while at < len(lines) and (not lines[at] or _VALUE_TAG.fullmatch(lines[at])):
        lines[at] = _VALUE_TAG.sub(r"\1=\2", lines[at])
        at += 1
    opened = _OPEN_TAG.fullmatch(lines[at]) if at < len(lines) else None
    least = 2 if at else 3  # lines of which something is left without the tags
    is_closed = opened and len(lines) - at >= least and lines[-1] == f"</{opened[1]}>"
    name = opened[1] if opened and is_closed else ""
    if name:
        lines[at:] = lines[at + 1 : -1]
    return ("\n".join(lines), [at, name]) if at or name else None


def decode_tags(text: str, how: Any) -> str:
    """The text with its tags."""
    size, outer = how
    lines = text.split("\n")
    is_old = isinstance(outer, bool)  # ledgers of 0.1: other labels, and one above the rest
    for at in range(size):
        if lines[at]:
            name, _, value = lines[at].partition(": " if is_old else "=")
            lines[at] = f"<{name}>{value}</{name}>"
    if is_old:
        outer = lines.pop(size).removesuffix(":") if outer else ""
    if outer:
        lines[size:] = [f"<{outer}>", *lines[size:], f"</{outer}>"]
    return "\n".join(lines)


def encode_blanks(text: str) -> tuple[str, Any] | None:
    """The text without blanks at the end of lines; where they were, counted from the last ones."""
    if " \n" not in text and "\t\n" not in text and not text.endswith((" ", "\t")):
        return None
    cuts: list[list[Any]] = []
    end = 0
    for found in _BLANKS.finditer(text):
        if found[1] is None:
            cuts.append([found.start() - end, found[0]])
            end = found.end()
    return (_BLANKS.sub(r"\1", text), cuts) if cuts else None


def decode_blanks(text: str, how: Any) -> str:
    """The text with its blanks."""
    was: list[str] = []
    at = 0
    for distance, blanks in how:
        was += (text[at : at + distance], blanks)
        at += distance
    return "".join([*was, text[at:]])


_NAMES = re.compile(r"(?:^[^\s⟨⟩<>]{1,60}\n){3,}[^\s⟨⟩<>]{1,60}$", re.MULTILINE)
"""Lines that are one name each, as in the listing of a folder."""
_TWO_NAMES = re.compile(r"\n[^\s⟨⟩<>]{1,60}+\n[^\s⟨⟩<>]{1,60}+\n")
"""Found in every such listing. A pattern that begins with a character is found much faster."""


def encode_lists(text: str) -> tuple[str, Any] | None:
    """Return the text with names on one line instead of one a line; where those lines are."""
    if _TWO_NAMES.search(text) is None:
        return None
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


_LISTED_PATH = r"[^\s:*?\"'<>|()⟨⟩]*[^\s:*?\"'<>|()⟨⟩/]"
_SECTION = rf"{_LISTED_PATH}:(?:\n[^\s⟨⟩<>]+(?<!:))*"
_TREES = re.compile(
    rf"^(?:{_SECTION}(?:\n\n{_SECTION}){{2,}}"  # as `ls -R` lists folders
    rf"|{_LISTED_PATH}(?:\n{_LISTED_PATH}){{2,}}|{_LISTED_PATH}:(?:\n{_LISTED_PATH}:){{2,}})$",
    re.MULTILINE,
)
"""Paths one after the other: folders with the names in each, or one path a line."""
_DEEPEST = 40
"""Parts of a path in a tree."""
_Listed: TypeAlias = tuple[list[str], str]
"""The parts of a path, and the rest of its line."""


def encode_trees(text: str) -> tuple[str, Any] | None:
    """Return the text with lists of paths as trees: their lines, sizes and what parted the paths.

    A path stands below its folder, one blank further to the right; a line that ends with a slash
    is a folder that the list has not. The names in a folder follow it on its line.
    """
    if "/" not in text or is_numbered(text[:_START]):
        return None
    shown: list[str] = []
    trees: list[list[Any]] = []
    end = line = 0
    for found in _TREES.finditer(text):
        separator = "\n\n" if "\n\n" in found[0] else "\n"
        listed = [_listed(each) for each in found[0].split(separator)]
        if max(len(parts) for parts, _ in listed) > _DEEPEST:
            continue
        tree = list(_branches(listed, 0, 0))
        if sum(map(len, tree)) + len(tree) > len(found[0]):
            continue
        before = text[end : found.start()]
        line += before.count("\n")
        trees.append([line, len(tree), separator])
        line += len(tree) - 1
        shown += (before, "\n".join(tree))
        end = found.end()
    return ("".join([*shown, text[end:]]), trees) if trees else None


def decode_trees(text: str, how: Any) -> str:
    """Return the text with whole paths, and one name a line below its folder."""
    lines = text.split("\n")
    for start, size, separator in reversed(how):
        folders: list[list[str]] = []
        listed: list[str] = []
        for line in lines[start : start + size]:
            entry = line.lstrip(" ")
            level = len(line) - len(entry)
            path, colon, names = entry.partition(":")
            above = folders[level - 1] if level else []
            parts = [*above, *path.removesuffix("/").split("/")]
            folders[level:] = [parts]
            if not path.endswith("/"):
                listed.append("\n".join(["/".join(parts) + colon, *names.split()]))
        lines[start : start + size] = [separator.join(listed)]
    return "\n".join(lines)


def _listed(entry: str) -> _Listed:
    head, *names = entry.split("\n")
    path, colon, _ = head.partition(":")
    return path.split("/"), " ".join([colon, *names])


def _branches(listed: Sequence[_Listed], depth: int, level: int) -> Iterator[str]:
    """Yield the lines of a tree of paths that share their first `depth` parts."""
    at = 0
    while at < len(listed):
        parts, after = listed[at]
        shared, stop = _shared(listed, at, depth)
        is_listed = shared == len(parts)
        name = "/".join(parts[depth:shared])
        yield f"{' ' * level}{name}{after if is_listed else '/'}"
        yield from _branches(listed[at + is_listed : stop], shared, level + 1)
        at = stop


def _shared(listed: Sequence[_Listed], start: int, depth: int) -> tuple[int, int]:
    """Return how many parts the paths from `start` on share, and where others begin."""
    first = listed[start][0]
    shared, stop = len(first), start + 1
    for parts, _ in islice(listed, start + 1, None):
        same = sum(1 for _ in takewhile(lambda pair: eq(*pair), zip(first, parts, strict=False)))
        if same <= depth or same == len(parts):
            break
        shared, stop = min(shared, same), stop + 1
    return shared, stop


_FRAME = re.compile(r'( *)File "([^\s":…]+)", line (\d+), in (.+)$')
_SHORT_FRAME = re.compile(r"( *)([^\s:]+):(\d+) (.+)")
_FEWEST_FRAMES = 3


def encode_frames(text: str) -> tuple[str, Any] | None:
    """Return the text with the frames of Python's tracebacks as `path:line name`; their lines.

    A file that was named above, and no other of that name since, is named without its folder.
    """
    if text.count(", line ") < _FEWEST_FRAMES:
        return None
    lines = text.split("\n")
    frames: list[int] = []
    folders: dict[str, str] = {}
    for at, line in enumerate(lines):
        found = _FRAME.match(line)
        if found is not None:
            blanks, path, number, function = found.groups()
            folder, slash, name = path.rpartition("/")
            shown = f"…/{name}" if slash and folders.get(name) == folder else path
            folders[name] = folder
            lines[at] = f"{blanks}{shown}:{number} {function}"
            frames.append(at)
    return ("\n".join(lines), frames) if len(frames) >= _FEWEST_FRAMES else None


def decode_frames(text: str, how: Any) -> str:
    """Return the text with the frames as Python writes them."""
    lines = text.split("\n")
    folders: dict[str, str] = {}
    for at in how:
        blanks, path, number, function = _SHORT_FRAME.match(lines[at]).groups()  # type: ignore[union-attr]
        folder, slash, name = path.rpartition("/")
        folder = folders[name] if folder == "…" else folder
        folders[name] = folder
        lines[at] = f'{blanks}File "{folder}{slash}{name}", line {number}, in {function}'
    return "\n".join(lines)


_DETAILS = re.compile(
    r"([bcdlps-][rwxsStT-]{9}[.+@]?) +(\d+) (\S+) +(\S+) +(\d+) "
    r"([A-Z][a-z]{2} [ \d]\d (?: \d{4}|\d\d:\d\d)) (\S.*)"
)
"""A line of `ls -l`: rights, links, owner, group, size, date and name."""
_FEWEST_FILES = 4


def encode_details(text: str) -> tuple[str, Any] | None:
    """Return the text with what most listed files have in common above them: rights, owner, date.

    What undoes it: the line above each listing, how many files follow, the widths of the columns,
    and which files have another owner or date. Other rights stand on the line of their file.
    """
    if "rw" not in text:
        return None
    shown: list[str] = []
    listings: list[list[Any]] = []
    for is_listing, group in groupby(text.split("\n"), lambda line: bool(_DETAILS.fullmatch(line))):
        lines = list(group)
        found = _listing(lines) if is_listing and len(lines) >= _FEWEST_FILES else None
        if found is not None:
            listings.append([len(shown), len(lines), *found[1:]])
            lines = found[0]
        shown += lines
    return ("\n".join(shown), listings) if listings else None


def decode_details(text: str, how: Any) -> str:
    """Return the text with owner and date on each line."""
    lines = text.split("\n")
    for start, size, widths, others in reversed(how):
        usual = lines[start].removesuffix(":").split(" ", 4)
        files = lines[start + 1 : start + 1 + size]
        rows = [
            _details(line) if at in others else _with_usual(line, usual)
            for at, line in enumerate(files)
        ]
        lines[start : start + 1 + size] = [_aligned(row, widths) for row in rows]
    return "\n".join(lines)


def _listing(lines: Sequence[str]) -> tuple[list[str], list[int], list[int]] | None:
    """Return the lines of a listing under its usual owner and date, the widths and the others."""
    rows = [_details(line) for line in lines]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:5]]
    if [_aligned(row, widths) for row in rows] != list(lines):
        return None
    keys = [(*row[:4], row[5]) for row in rows]
    usual = Counter(keys).most_common(1)[0][0]
    others = [at for at, key in enumerate(keys) if key[2:] != usual[2:]]
    shown = [f"{' '.join(usual)}:"]
    for key, row in zip(keys, rows, strict=True):
        if key == usual:
            shown.append(f"{row[4]} {row[6]}")
        elif key[2:] == usual[2:]:
            shown.append(f"{row[0]} {row[1]} {row[4]} {row[6]}")
        else:
            shown.append(" ".join(row))
    return shown, widths, others


def _details(line: str) -> Sequence[str]:
    found = _DETAILS.fullmatch(line)
    return found.groups() if found else ()


def _with_usual(line: str, usual: Sequence[str]) -> Sequence[str]:
    rights, links, owner, group, date = usual
    if line[:1].isdigit():
        size, name = line.split(" ", 1)
    else:
        rights, links, size, name = line.split(" ", 3)
    return rights, links, owner, group, size, date, name


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return a line of `ls -l`: numbers end, and words begin, at the same place in all lines."""
    rights, links, owner, group, size, date, name = row
    first, second, third, fourth, fifth = widths
    left = f"{rights:<{first}} {links:>{second}} {owner:<{third}} {group:<{fourth}}"
    return f"{left} {size:>{fifth}} {date} {name}"


_PREFIX = re.compile(r"( *)(\d{1,9})([→\t|:-])")
_SOMEWHERE = re.compile(r"\n *\d{1,9}[→\t|:-]")
_ARROW = "→"
_TAB = "\t"
_TABBED = re.compile(r" *\d+\t")
SPARSE = 5
"""Distance between the lines of a long run that keep their numbers."""


@dataclass(frozen=True, slots=True)
class Run:
    """Lines numbered one after the other, all in one style."""

    start: int
    stop: int
    """Indexes of the lines: `lines[start:stop]`."""
    first: int
    """The number of the first line."""
    width: int
    """Width of the numbers, padded with blanks on the left. 0: no wider than their digits."""
    separator: str
    """Text between the number and the line."""
    every: int = 1
    """Distance between the lines that have numbers; the first has one."""


def is_numbered(text: str) -> bool:
    """Return True if any line may have a number; a quick check before a thorough one."""
    return _PREFIX.match(text) is not None or _SOMEWHERE.search(text) is not None


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
        if separator == _TAB and not padding:
            end = _end_of_sparse(lines, at, int(digits))
            if end > at:
                yield Run(at, end, int(digits), 0, _TAB, SPARSE)
                at = end
                continue
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
    if run.every > 1:
        return [
            line if at % run.every else line.partition(run.separator)[2]
            for at, line in enumerate(own)
        ]
    if run.width and run.first + len(own) <= 10**run.width:
        cut = run.width + 1
        return [line[cut:] for line in own]
    return [line.split(run.separator, 1)[1] for line in own]


def encode_line_numbers(text: str) -> tuple[str, Any] | None:
    """The text with few and bare numbers, and per run where it is and how it was."""
    if not is_numbered(text):
        return None
    lines = text.split("\n")
    changed: list[list[Any]] = []
    for run in runs(lines):
        shown = _TAB if run.separator == _ARROW else run.separator
        inner, size = bodies(lines, run), run.stop - run.start
        is_sparse = shown == _TAB and size > 2 * SPARSE and not any(map(_TABBED.match, inner))
        every = SPARSE if is_sparse else 1
        if run.every == 1 and (is_sparse or run.width or shown != run.separator):
            changed.append([run.start, size, run.width, run.separator, every])
            lines[run.start : run.stop] = [
                body if at % every else f"{run.first + at}{shown}{body}"
                for at, body in enumerate(inner)
            ]
    return ("\n".join(lines), changed) if changed else None


def decode_line_numbers(text: str, how: Any) -> str:
    """The text with its numbers as they were."""
    lines = text.split("\n")
    for start, size, width, separator, *given in how:
        every = given[0] if given else 1  # ledgers of 0.1 have none
        shown = _TAB if separator == _ARROW else separator
        first = int(lines[start].partition(shown)[0])
        inner = (
            line if at % every else line.partition(shown)[2]
            for at, line in enumerate(lines[start : start + size])
        )
        lines[start : start + size] = [
            f"{number:>{width}}{separator}{body}" for number, body in enumerate(inner, first)
        ]
    return "\n".join(lines)


def _end_of_sparse(lines: Sequence[str], start: int, first: int) -> int:
    """Return where a run ends in which few lines have a number; `start` if none begins there.

    Lines below the last number are of the run if the text ends before another number is due.
    """
    at, end = start, start
    while at < len(lines) and lines[at].startswith(f"{first + at - start}{_TAB}"):
        end = at
        if any(map(_TABBED.match, lines[at + 1 : at + SPARSE])):
            break
        at += SPARSE
    if end == start:
        return start
    rest = lines[end + 1 : end + 1 + SPARSE]
    is_end = len(rest) < SPARSE and not any(map(_TABBED.match, rest)) and all(rest)
    return len(lines) if is_end else end + 1


def _end_of_run(lines: Sequence[str], run: Run) -> int:
    """Return the end of the numbered lines, searched in growing steps."""
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
_BARE_HIT = re.compile(r"(?=[^\s:]*/)[^\s:]*\.\w+:(?!\d+:)")
_PATH_FIRST = re.compile(r"\n[^\s:]*[/.][^\s:]*:")
"""A line that may be a hit."""
_CONTEXT_LINE = re.compile(r"-(?=([0-9]{1,9})-)")
"""Separator after the path and number of a neighbouring line of a search hit."""
_PATH = re.compile(r"(?:/|\./|~/|[\w.@-]+/)[^\s:*?\"'<>|()]*(?<!/)")
"""Of a file: what ends like a folder may be a heading."""
_START = 40
"""Characters that tell a file with numbered lines, in which no line begins with a path."""


def encode_paths(text: str) -> tuple[str, Any] | None:
    """The text with a heading for each file of a search, and where they are: `[line, lines]`.

    Where the lines have no numbers, the heading ends with a colon.
    """
    if is_numbered(text[:_START]):
        return None
    if _PATH_FIRST.search(text) is None and _CONTEXT_LINE.search(text) is None:
        return None  # a search has at least two lines, so that one of them follows another
    lines = text.split("\n")
    searched = _searched(text, lines)
    shown: list[str] = []
    headings: list[list[Any]] = []
    for heading, group in groupby(lines, lambda line: _heading_of(line, searched)):
        under = list(group)
        if heading and len(under) > 1:
            headings.append([len(shown), len(under), True])
            shown.append(heading)
            cut = len(heading) + (not heading.endswith(":"))
            under = [line[cut:] for line in under]
        shown += under
    return ("\n".join(shown), headings) if headings else None


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
        if not is_search:  # as ledgers of 0.1 have it: files below their folder
            was += [path + line[1:] for line in under]
        elif path.endswith(":"):
            was += [path + line for line in under]
        else:
            was += [f"{path}{_sign_after_number(line)}{line}" for line in under]
    return "\n".join([*was, *lines[at:]])


def _searched(text: str, lines: Sequence[str]) -> set[str]:
    """The files that a search shows lines of: with hits, or with lines that count on."""
    found = set(_HIT.findall(text))
    if _CONTEXT_LINE.search(text) is None:
        return found
    for line, following in pairwise(lines):
        if _is_path(line) and _is_path(following):
            continue  # names with dates in them
        for sign in _CONTEXT_LINE.finditer(line):
            path = line[: sign.start()]
            if following.startswith(f"{path}-{int(sign[1]) + 1}-") and _is_path(path):
                found.add(path)
    return found


def _heading_of(line: str, searched: set[str]) -> str:
    """Return the file that the line was found in; with a colon if the line has no number."""
    if searched:
        hit = _HIT.match(line)
        if hit is not None:
            return hit[1]
        for sign in _CONTEXT_LINE.finditer(line):
            if line[: sign.start()] in searched:
                return line[: sign.start()]
    hit = _BARE_HIT.match(line)
    return hit[0] if hit is not None else ""


def _is_path(text: str) -> bool:
    return "/" in text and _PATH.fullmatch(text) is not None


def _sign_after_number(line: str) -> str:
    """A hit's sign is the same on both sides of its number."""
    return line.lstrip("0123456789")[0]


_EDGES = re.compile(r"^(?:([\[{])|([\]}])|[\[{].{40,}[\]}])$", re.MULTILINE)
"""A line that opens JSON, one that closes it, or one that may hold all of it."""
_FEWEST_ROWS = 3
_INDENTED: tuple[tuple[Any, bool], ...] = tuple((by, False) for by in (2, 4, "\t", 3, 1))
_ON_ONE_LINE: tuple[tuple[Any, bool], ...] = ((None, True), (None, False))
"""The usual ways to write JSON: the indentation of lines, and True if blanks are left out."""
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
    """Return places of possible JSON: from an opening line to a closing one, or on one line."""
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
    """Return the form of the block, if one of the usual forms gives the same text."""
    layouts = list(_layouts_of(block))
    escapings = (False, True) if "\\u" in block else (False,)
    for (indent, tight), is_ascii in product(layouts, escapings):
        style = {"indent": indent, "tight": tight, "ascii": is_ascii}
        if _write(value, style) == block:
            return style
    return None


def _layouts_of(block: str) -> Iterator[tuple[Any, bool]]:
    """Yield the layouts that the block may have, by the beginning of its second line."""
    _, line_end, rest = block.partition("\n")
    if not line_end:
        yield from _ON_ONE_LINE
        return
    blanks = rest[: len(rest) - len(rest.lstrip(" \t"))]
    for by, tight in _INDENTED:
        if blanks == (by if isinstance(by, str) else " " * by):
            yield by, tight


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
    """Return the value with `change` applied at the path."""
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
    """Return the text with the overwritten parts."""
    lines = text.split("\n")
    for at, before in how:
        lines[at] = before + lines[at]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Encoding:
    """One way to write a text, and back."""

    encode: Callable[[str], tuple[str, Any] | None]
    """Returns the new text and the data to undo it, as JSON; None if nothing is gained."""
    decode: Callable[[str, Any], str]


ENCODINGS: Mapping[str, Encoding] = {
    "tags": Encoding(encode_tags, decode_tags),
    "colours": Encoding(encode_colours, decode_colours),
    "progress": Encoding(encode_progress, decode_progress),
    "line_numbers": Encoding(encode_line_numbers, decode_line_numbers),
    "blanks": Encoding(encode_blanks, decode_blanks),
    "json": Encoding(encode_json, decode_json),
    "tables": Encoding(encode_tables, decode_json),
    "paths": Encoding(encode_paths, decode_paths),
    "trees": Encoding(encode_trees, decode_trees),
    "details": Encoding(encode_details, decode_details),
    "frames": Encoding(encode_frames, decode_frames),
    "lists": Encoding(encode_lists, decode_lists),
    "runs": Encoding(encode_runs, decode_runs),
}
"""By name, in the order in which they are applied."""


def encode(name: str, text: str) -> tuple[str, Any] | None:
    """Return the encoded text and the data for `decode`; None if it is not shorter."""
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
