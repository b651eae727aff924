"""Chunks: what a run of characters without blanks, quotes and brackets is."""

from __future__ import annotations

from collections.abc import Iterator

from enfold.receipt import patterns
from enfold.receipt.patterns import CLASSES, Class

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
    if "\\" in chunk and not patterns.WINDOWS_PATH.fullmatch(chunk):
        for part in patterns.ESCAPE.split(chunk):
            yield from in_chunk(part)
        return
    core = chunk.lstrip(patterns.LEFT_EDGE).rstrip(patterns.RIGHT_EDGE)
    if "/" in core:
        core = patterns.LINE_NUMBER.sub("", core)
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
    pieces = patterns.JOINT.split(core)
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
        return "url" if patterns.URL.fullmatch(core) else None
    if "@" in core and patterns.EMAIL.fullmatch(core):
        return "name"
    if core[0].isdigit() or core[0] in "$€£¥₹+-~≈±":
        found = patterns.NUMERIC.fullmatch(core)
        if found:
            return _class_named(found.lastgroup)
    if "/" in core or "\\" in core:
        return "path" if _is_path(core) else None
    return _class_of_code(core) if core.isascii() else None


def _class_of_word(word: str) -> Class | None:
    if word.islower() or not word.isascii():
        return None
    if word.isupper():
        return "error" if word in patterns.ERROR_CODES else None
    if not patterns.HUMPS.fullmatch(word):
        return None
    names_an_error = word.endswith(("Error", "Exception")) and word[0].isupper()
    return "error" if names_an_error else "identifier"


def _class_of_code(core: str) -> Class | None:
    """Of what holds letters and other signs, but no slash."""
    stem, dot, ending = core.rpartition(".")
    if dot and ending in patterns.FILE_ENDINGS and patterns.SEGMENT.fullmatch(stem):
        return "path" if _is_file(stem, ending) else None
    found = patterns.CODE.fullmatch(core)
    if found:
        return _class_named(found.lastgroup)
    if patterns.HASH.fullmatch(core) or patterns.MIXED.fullmatch(core):
        return "identifier"
    return _class_of_dotted(core) if patterns.DOTTED.fullmatch(core) else None


def _class_of_dotted(core: str) -> Class | None:
    """Of words joined by dots or underscores, as code has them."""
    words = core.split(".")
    domains = patterns.DOMAINS if len(words) == _FEW else patterns.MORE_DOMAINS
    if len(words) > 1 and words[-1] in domains and core.islower() and "_" not in core:
        return "url"
    if patterns.TELLING.search(core):
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
        return patterns.WINDOWS_PATH.fullmatch(core) is not None
    first, *rest = core.removesuffix("/").split("/")
    anchored = first in {"", ".", "..", "~"}
    segments = rest if anchored else [first, *rest]
    if not segments or not all(map(patterns.SEGMENT.fullmatch, segments)):
        return False
    if not any(map(str.isalpha, core)):
        return False
    _, dot, ending = segments[-1].rpartition(".")
    if dot and ending in patterns.PATH_ENDINGS:
        return True
    if anchored:
        return len(segments) > 1 or first in {".", "..", "~"}
    if segments[0] in patterns.ROOTS:
        return len(segments) > 1 and segments[1][0].isalpha()
    return len(segments) > _FEW and any(set(each) & set("._-0123456789") for each in segments)


def _class_named(name: str | None) -> Class | None:
    return next((each for each in CLASSES if each == name), None)
