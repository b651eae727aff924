"""Terminals: output as it stood on the screen in the end, without colours and overwritten lines."""

from __future__ import annotations

import re
from itertools import accumulate, chain
from typing import Any

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
    """Of every line what was written last; what it was written over is set aside."""
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
