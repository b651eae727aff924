"""Secrets: keys, tokens and passwords, which are no items. A receipt is shown and stored."""

from __future__ import annotations

import re

from enfold.receipt import patterns
from enfold.receipt.lines import Lines

_TELLING = (
    *("ecret", "ECRET", "assw", "ASSW", "redential", "uthorization", "earer "),
    *("key", "Key", "KEY", "oken", "TOKEN", "ignature", "sig", "Sig", "-u", "--user"),
)
_BORDER = re.compile(r"[\s\"'`=:&?/@,;]+")


class Secrets:
    """What in some lines is secret: by how it begins, or by what it is called there."""

    def __init__(self, lines: Lines) -> None:
        found = patterns.ASSIGNED.findall(lines.with_any(*_TELLING))
        self._values = frozenset(value for values in found for value in values if value)
        self._all = "\n".join(sorted(self._values))

    def hold(self, item: str) -> bool:
        """True if the item is a secret, is a part of one, or has one in it."""
        if patterns.SECRET.search(item):
            return True
        if not self._values:
            return False
        return item in self._all or not self._values.isdisjoint(_BORDER.split(item))
