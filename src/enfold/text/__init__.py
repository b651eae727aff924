"""Text: exact items, words and sentences, as every part of enfold reads them."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Generic, TypeVar

Value = TypeVar("Value")

SHORT = 64
"""Characters of a text that is its own key."""
_ENTRIES = 65_536
_RECENT, _LONG = 2_048, 2_000
"""Number and length of the newest texts that are found without a digest."""


def digest_of(text: str) -> bytes:
    """Return 16 bytes that stand for a text."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class TextMemo(Generic[Value]):
    """A function of a text with a memo, in two generations.

    When the young generation is full it becomes the old one, and the old one is dropped. A text
    that is found in the old one moves to the young. `weigh` returns the number of entries that a
    value counts for. Threads may share it: a generation is replaced, never emptied.
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
        self._young: dict[str | bytes, Value] = {}
        self._old: dict[str | bytes, Value] = {}
        self._weight = 0
        self._recent: dict[str, Value] = {}

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def __call__(self, text: str) -> Value:
        """Return the function's value for a text."""
        found = self._recent.get(text)
        if found is None:
            found = self._find(text if len(text) <= SHORT else digest_of(text), text)
            if len(text) <= _LONG:
                if len(self._recent) >= _RECENT:
                    self._recent = {}
                self._recent[text] = found
        return found

    def _find(self, key: str | bytes, text: str) -> Value:
        found = self._young.get(key)
        if found is not None:
            return found
        found = self._old.get(key)
        if found is None:
            found = self._function(text)
        if self._weight >= self._entries:
            self._old, self._young, self._weight = self._young, {}, 0
        self._young[key] = found
        self._weight += self._weigh(found)
        return found
