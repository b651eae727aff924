"""Text: exact items, words and sentences, as every part of enfold reads them."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from sys import hash_info
from typing import Generic, TypeVar

Value = TypeVar("Value")


def _digest(text: str) -> int:
    whole = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(whole, digest_size=8).digest(), "big")


key_of: Callable[[str], int] = hash if hash_info.width >= 64 else _digest  # noqa: PLR2004
"""Returns a key of 64 bits that stands for a text in a memo.

Python keeps the hash with the text and salts it for each process. A chance collision is not
expected in the life of any process.
"""

_ENTRIES = 65_536


class TextMemo(Generic[Value]):
    """A function of a text with a memo, in two generations.

    When the young generation is full it becomes the old one, and the old one is dropped. A text
    that is found in the old one moves to the young. `weigh` returns the number of entries that a
    value counts for. Threads may share it: a generation is replaced, never emptied.

    The texts themselves are not held, only their keys.
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
        key = key_of(text)
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
