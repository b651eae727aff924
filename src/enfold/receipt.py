"""The receipt: what became of every exact item of what left the view.

Exact items are paths, addresses, identifiers, numbers with their unit, dates, names, errors and
commands. Each is

- kept: literally in the view, in a summary or in what stays;
- restorable: not in the view, but to be had again. `restorable_by` says how: by `recall`, where the
  model itself can look it up; from the `store`, where a program finds it in the session's history;
  from the `ledger`, where a program restores the conversation;
- lost: neither.

`extract` finds the items of a text, `receipt` says what became of them, `check` refuses what falls
below a floor.

A receipt's JSON, whose names do not change:

    {"items": {CLASS: {"kept": 3, "restorable": 9, "lost": 0}, …},
     "said": {CLASS: {…}, …},           of these, what users said themselves, and decisions
     "restorable_by": "ledger",         or "store", "recall", null
     "seconds": 0.02,
     "kept": [{"class": CLASS, "item": "src/a.py"}, …],
     "restorable": […],
     "lost": […],
     "more": {"kept": 0, "restorable": 12, "lost": 0}}    how many are not named in the lists
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import Any, Literal, TypeAlias

from enfold.errors import ConfigError, ReceiptError
from enfold.messages import Message, Text
from enfold.text.items import CLASSES, Class, extract, items_of, texts

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


OWN_WORDS = 2_000
"""Characters. What is longer was not typed but put in: a file, a log, a tool's answer."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")  # noqa: RUF001 - other scripts' full stops
_WORDS = (
    *(
        "decided",
        "decision",
        "agreed",
        "approved",
        "settled on",
        "we chose",
        "i chose",
        "opted for",
    ),
    *("go with", "going with", "went with", "let's use", "let's keep", "we'll use", "we will use"),
    *("the plan is", "instead of", "must not", "must be", "final answer"),
    *("decidimos", "decidido", "decisión", "acordamos", "elegimos", "en lugar de"),
    *("décidé", "décision", "convenu", "on part sur", "au lieu de"),
    *("entschieden", "beschlossen", "entscheidung", "vereinbart", "statt dessen", "wir nehmen"),
    *("decisão", "combinamos", "escolhemos", "em vez de"),
    *("решили", "решено", "договорились", "вместо"),
    *("قررنا", "القرار", "اتفقنا"),
    *(
        "决定",
        "決定",
        "确定用",
        "就用",
        "采用",
        "敲定",
        "商定",
        "改为",
        "改成",
        "にします",
        "に決め",
    ),
    *("결정", "하기로"),
)
"""By which people mark that something is settled."""


def weighty(messages: Iterable[Message]) -> Iterator[str]:
    """What users said in their own words, and the sentences in which a model settled something."""
    for message in messages:
        for part in message.parts:
            if not isinstance(part, Text):
                continue
            if message.role == "user" and len(part.text) <= OWN_WORDS:
                yield part.text
            elif message.role == "assistant" and _decides(part.text):
                yield from _decisions(part.text)


def _decisions(text: str) -> Iterator[str]:
    for line in filter(_decides, text.split("\n")):
        yield from filter(_decides, _SENTENCE_END.split(line))


def _decides(text: str) -> bool:
    lower = text.lower().replace("’", "'")
    return any(word in lower for word in _WORDS)


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
