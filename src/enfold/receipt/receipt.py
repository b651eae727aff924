"""The receipt itself: every exact item of what left the view, and what became of it.

An item counts once, however often it comes up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any, Literal, TypeAlias

from enfold.messages import Message
from enfold.receipt.decisions import weighty
from enfold.receipt.items import CLASSES, Class, extract, items_of
from enfold.receipt.shown import Shown

Fate: TypeAlias = Literal["kept", "restorable", "lost"]
FATES: tuple[Fate, ...] = ("kept", "restorable", "lost")
Means: TypeAlias = Literal["recall", "store", "ledger"]
"""How what is restorable can be had: the model looks it up, a program finds it in the session's
history, or a program restores the whole from the ledger."""

LISTED = 200
"""How many items of each fate are named in a receipt's JSON."""
_NAMED = 8


@dataclass(frozen=True, slots=True)
class Count:
    """How many items were kept, are restorable, or are lost."""

    kept: int = 0
    restorable: int = 0
    lost: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.kept + self.restorable + self.lost

    @classmethod
    def of(cls, fates: Iterable[Fate]) -> Count:
        """Of so many fates."""
        found = list(fates)
        return cls(*(found.count(fate) for fate in FATES))

    def as_json(self) -> dict[str, int]:
        """For programs."""
        return {"kept": self.kept, "restorable": self.restorable, "lost": self.lost}


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of the exact items of what left the view."""

    items: Mapping[Class, Mapping[str, Fate]]
    """Every item with its fate, by class."""
    said: Mapping[Class, Count]
    """Of these, the ones that users said in their own words, or that a decision holds."""
    restorable_by: Means | None = None
    """How what is restorable can be had. None where there is no way."""
    seconds: float = 0.0
    """What it took to make it out."""

    @property
    def counts(self) -> dict[Class, Count]:
        """How many items of each class."""
        return {name: Count.of(fates.values()) for name, fates in self.items.items()}

    @property
    def total(self) -> Count:
        """How many items of all classes."""
        return Count.of(fate for fates in self.items.values() for fate in fates.values())

    def having(self, fate: Fate) -> Iterator[tuple[Class, str]]:
        """The items of one fate, each with its class."""
        for name, fates in self.items.items():
            yield from ((name, item) for item, own in fates.items() if own == fate)

    def counts_as_json(self) -> dict[str, Any]:
        """The figures alone, without a word of the conversation."""
        return {
            "items": {name: count.as_json() for name, count in self.counts.items()},
            "said": {name: count.as_json() for name, count in self.said.items()},
            "restorable_by": self.restorable_by,
            "seconds": self.seconds,
        }

    def as_json(self, limit: int | None = LISTED) -> dict[str, Any]:
        """The figures, and up to so many items of each fate; `more` says how many are not named."""
        named: dict[str, Any] = {}
        more: dict[str, int] = {}
        for fate in FATES:
            found = [{"class": name, "item": item} for name, item in self.having(fate)]
            named[fate] = found if limit is None else found[:limit]
            more[fate] = len(found) - len(named[fate])
        return {**self.counts_as_json(), **named, "more": more}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        total = self.total
        if not total.total:
            yield "No exact items left the view."
            return
        yield f"Exact items of what left the view: {self._spoken(total)}"
        for name, count in self.counts.items():
            if count.total:
                yield f" - {name}: {self._spoken(count)}"
        if total.lost:
            named = ", ".join(item for _, item in islice(self.having("lost"), _NAMED))
            rest = total.lost - _NAMED
            yield f" - Lost: {named}{f' and {rest:,} more' if rest > 0 else ''}"

    def _spoken(self, count: Count) -> str:
        by = f" by {self.restorable_by}" if self.restorable_by else ""
        parts = [f"{count.kept:,} kept"]
        parts += [f"{count.restorable:,} restorable{by}"] if count.restorable else []
        return ", ".join((*parts, f"{count.lost:,} lost"))


def receipt(
    gone: Sequence[Message],
    view: Sequence[Message],
    restorable: bool | Callable[[str], bool] = False,  # noqa: FBT001, FBT002 - or by item
    *,
    by: Means | None = None,
) -> Receipt:
    """What became of the exact items of `gone`: of what was folded, and of what edits took out.

    `view` is what the model is sent from now on, summaries included. `restorable` is whether what
    is not in it can be had again, all of it or item by item; `by` says how.
    """
    started = perf_counter()
    shown = Shown(view)

    def fate_of(item: str) -> Fate:
        if shown.holds(item):
            return "kept"
        return "restorable" if _holds(restorable, item) else "lost"

    fates = {
        name: {item: fate_of(item) for item in found} for name, found in items_of(gone).items()
    }
    weighing = extract("\n".join(weighty(gone)))
    said = {
        name: Count.of(fates[name][item] for item in weighing[name] if item in fates[name])
        for name in CLASSES
    }
    return Receipt(fates, said, by if restorable else None, perf_counter() - started)


def _holds(restorable: bool | Callable[[str], bool], item: str) -> bool:  # noqa: FBT001
    return restorable(item) if callable(restorable) else restorable
