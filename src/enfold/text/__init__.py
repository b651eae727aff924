"""Text: exact items, words and sentences, as every part of enfold reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")

_ENTRIES = 65_536
_LENGTH_BITS = 32


class TextMemo(Generic[Value]):
    """A function of a text with a memo, in two generations.

    When the young generation is full it becomes the old one, and the old one is dropped. A text
    that is found in the old one moves to the young. `weigh` returns the number of entries that a
    value counts for. Threads may share it: a generation is replaced, never emptied.

    The texts themselves are not held. The key is the text's hash of 64 bits, which Python salts for
    each process and keeps with the text, and its length: a chance collision is not expected in the
    life of any process.
    """

    def __init__(
        self,
        function: Callable[[str], Value],
        weigh: Callable[[Value], int],
        entries: int = _ENTRIES,
    ) -> None:
        self._function = function
        self._weigh = weigh
        self._entries = entries
        self._young: dict[int, Value] = {}
        self._old: dict[int, Value] = {}
        self._weight = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def limit(self, entries: int) -> None:
        """Lower the number of entries of a generation."""
        self._entries = min(self._entries, entries)

    def __call__(self, text: str) -> Value:
        """Return the function's value for a text."""
        key = (hash(text) << _LENGTH_BITS) + len(text)
        found = self._young.get(key)
        return self._find(key, text) if found is None else found

    def _find(self, key: int, text: str) -> Value:
        found = self._old.get(key)
        if found is None:
            found = self._function(text)
        if self._weight >= self._entries:
            self._old, self._young, self._weight = self._young, {}, 0
        self._young[key] = found
        self._weight += self._weigh(found)
        return found
