"""Floors: how much of what left the view must still be there, or the result is refused.

Two floors per class of item: on what is kept or restorable, and a smaller one on what is kept of
users' own words and of decisions, because what is known to be restorable must also be known to be
there. A share is rounded down to whole items, so that a class with few of them is not judged by
one. No summary is asked for more items than it has room for.

Where nothing is restorable a summary stands alone, and nobody can keep most of what a long tool
result named; those floors only refuse one that keeps next to nothing. All were chosen by measuring
summaries of recorded conversations (benchmarks/receipts.py): a sound one stays well above.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from enfold.errors import ConfigError, ReceiptError
from enfold.receipt.items import CLASSES, Class
from enfold.receipt.receipt import Count, Receipt

ROOM_FOR_AN_ITEM = 150
"""Tokens of a summary for each item that may be asked of it: the item and what is said of it."""


@dataclass(frozen=True, slots=True)
class Floors:
    """The least share of each class's items, 0 to 1; a class that is not named has none."""

    within_reach: Mapping[Class, float]
    """Kept or restorable."""
    said: Mapping[Class, float]
    """Kept, of what users said and of decisions."""

    def __post_init__(self) -> None:
        for floors in (self.within_reach, self.said):
            for name, share in floors.items():
                if name not in CLASSES or not 0 <= share <= 1:
                    raise ConfigError(
                        f"floor {name!r} is {share!r}: expected 0 to 1 for one of "
                        f"{', '.join(CLASSES)}"
                    )


_SAID: Mapping[Class, float] = {**dict.fromkeys(CLASSES, 0.2), "url": 0.1}

FLOORS = Floors(dict.fromkeys(CLASSES, 0.9), _SAID)
"""Where what left the view can be restored."""
ALONE = Floors(
    {
        "path": 0.01,
        "url": 0.02,
        "identifier": 0.01,
        "number": 0.01,
        "date": 0.01,
        "name": 0.02,
        "error": 0.02,
        "command": 0.005,
    },
    _SAID,
)
"""Where it cannot."""


def check(receipt: Receipt, floors: Floors | None = None, *, room: int | None = None) -> None:
    """Raise `ReceiptError`, naming class, share and floor, if the receipt falls below one.

    Without `floors` it goes by whether anything is restorable. `room` is how many tokens a summary
    was allowed. None where there is none.
    """
    chosen = floors or (ALONE if receipt.restorable_by is None else FLOORS)
    counts = receipt.counts
    for name, floor in chosen.within_reach.items():
        count = counts[name]
        reached = count.kept + count.restorable
        _refuse_below(floor, reached, count, room, f"{name} items are kept or restorable")
    for name, floor in chosen.said.items():
        count = receipt.said[name]
        what = f"{name} items in users' words and decisions are kept"
        _refuse_below(floor, count.kept, count, room, what)


def _refuse_below(floor: float, reached: int, count: Count, room: int | None, what: str) -> None:
    needed = int(count.total * floor)
    if room is not None:
        needed = min(needed, room // ROOM_FOR_AN_ITEM)
    if reached < needed:
        raise ReceiptError(
            f"{reached:,} of {count.total:,} ({reached / count.total:.0%}) {what}, where at least "
            f"{floor:.1%} are expected; nothing was changed"
        )
