"""What a view shows, arranged for looking up whether an item is in it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from enfold.messages import Message
from enfold.receipt.items import items_of
from enfold.receipt.texts import texts

_WORD = re.compile(r"[A-Za-z0-9_]+")


class Shown:
    """The text of a view."""

    def __init__(self, view: Sequence[Message]) -> None:
        self._text = "\n".join(texts(view))
        self._items = {item for found in items_of(view).values() for item in found}
        self._words = frozenset(_WORD.findall(self._text))

    def holds(self, item: str) -> bool:
        """Whether the item is there, as it is and not as a part of a longer word.

        Nearly all that are there were found as items too, and of nearly all others some word is
        missing: the text itself is rarely searched.
        """
        if item in self._items:
            return True
        if not self._words.issuperset(_WORD.findall(item)):
            return False
        at = self._text.find(item)
        while at >= 0:
            if self._stands_alone(at, at + len(item)):
                return True
            at = self._text.find(item, at + 1)
        return False

    def _stands_alone(self, start: int, end: int) -> bool:
        text = self._text
        goes_on = end < len(text) and _is_one_word(text[end - 1], text[end])
        return not goes_on and not (start and _is_one_word(text[start - 1], text[start]))


def _is_one_word(left: str, right: str) -> bool:
    """Whether two neighbours belong together; in scripts without blanks nobody can tell."""
    return all(each.isascii() and (each.isalnum() or each == "_") for each in (left, right))
