"""Reencoding: results written in ways that take fewer tokens, where that helps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from enfold.encodings import ENCODINGS, encode
from enfold.strategies.lossless.config import Encodings
from enfold.strategies.lossless.drafts import Draft, Terms
from enfold.strategies.lossless.texts import Right


def reencode(drafts: Sequence[Draft], wanted: Encodings, terms: Terms) -> None:
    """Write every draft that may be changed in the encodings that are wanted, if it then pays."""
    names = [name for name in ENCODINGS if name in wanted.names]
    changed: list[Draft] = []
    texts: list[str] = []
    applied: list[list[tuple[str, Any]]] = []
    for draft in drafts:
        if draft.right is Right.ANYTHING and not draft.holes:
            text, how = _encoded(draft.text, names)
            if how:
                changed.append(draft)
                texts.append(text)
                applied.append(how)
    before = terms.tokenizer.count_many([draft.text for draft in changed])
    after = terms.tokenizer.count_many(texts)
    for index, draft in enumerate(changed):
        if before[index] - after[index] >= terms.least:
            draft.text, draft.encodings = texts[index], applied[index]


def _encoded(text: str, names: Sequence[str]) -> tuple[str, list[tuple[str, Any]]]:
    """The text in all encodings that help, one after the other, and what undoes each."""
    applied: list[tuple[str, Any]] = []
    for name in names:
        found = encode(name, text)
        if found is not None:
            text, how = found
            applied.append((name, how))
    return text, applied
