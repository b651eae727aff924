"""The memo of counts: a text that was counted lately is not counted again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from sys import getsizeof
from threading import Lock

UNKNOWN = -1

_ENTRIES = 100_000
_BYTES = 8 * 2**20
"""More than a million tokens of text."""


class Memo:
    """Counts by text, in two generations, bounded by entries and by bytes.

    New texts go to the young generation. When it is full it becomes the old one, and the old one
    is dropped whole; a text that the old one still knows moves to the young. That keeps what is in
    use, as a queue of the least recently used would, but a known text costs one lookup and no
    lock: a generation is replaced, never emptied under a reader.

    `entries` and `size` (bytes of text) bound one generation. A text larger than a generation is
    not kept.
    """

    def __init__(self, *, entries: int = _ENTRIES, size: int = _BYTES) -> None:
        self._entries = entries
        self._size = size
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._young_size = 0
        self._changing = Lock()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def find(self, texts: Sequence[str]) -> list[int]:
        """The count of each text, or `UNKNOWN`."""
        counts = list(map(self._young.get, texts, repeat(UNKNOWN)))
        if self._old and UNKNOWN in counts:
            old = self._old
            for index, text in enumerate(texts):
                if counts[index] == UNKNOWN:
                    counts[index] = old.get(text, UNKNOWN)
            self.keep({text: old[text] for text in texts if text in old})
        return counts

    def keep(self, counted: Mapping[str, int]) -> None:
        """Remember counts for later."""
        with self._changing:
            for text, count in counted.items():
                self._keep(text, count)

    def _keep(self, text: str, count: int) -> None:
        size = getsizeof(text)
        if size > self._size or text in self._young:
            return
        if len(self._young) >= self._entries or self._young_size + size > self._size:
            self._old, self._young, self._young_size = self._young, {}, 0
        self._young[text] = count
        self._young_size += size
