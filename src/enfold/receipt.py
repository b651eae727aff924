"""The receipt: the fate of every exact item of the messages that left the view.

Exact items are paths, addresses, identifiers, numbers with a unit or label, dates, names, errors
and commands. Each is

- kept: literally in the view, in a summary or in a message that stays;
- restorable: not in the view, but available again. `restorable_by` names the way: the model looks
  it up by `recall`, a program finds it in the session's history in the `store`, or a program
  restores the conversation from the `ledger`;
- lost: neither.

`make_receipt` computes a receipt, `shortfalls` finds the floors that it does not reach, and
`ItemReview` compares drafts of a summary with what it replaces.

The JSON form of a receipt, whose field names do not change:

    {"items": {CLASS: {"kept": 3, "restorable": 9, "lost": 0}, …},
     "said": {CLASS: {…}, …},           of these, items in users' words and in decisions
     "restorable_by": "ledger",         or "store", "recall", null
     "seconds": 0.02,
     "warnings": ["2 of 40 (5%) path items …", …],      floors that were not reached
     "invented": [{"class": "path", "item": "src/b.py"}, …],   in the summary, not in its input;
                                        a CLASS of items, or "quotation"
     "kept": [{"class": CLASS, "item": "src/a.py"}, …],
     "restorable": […],
     "lost": […],
     "more": {"kept": 0, "restorable": 12, "lost": 0}}    items that the lists leave out
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from time import perf_counter
from typing import Any, Literal, TypeAlias

from enfold.errors import ConfigError
from enfold.jsontext import dump_text
from enfold.messages import Message, Text, ToolCall, ToolResult, text_of
from enfold.text.grammar import DECISION_PHRASES, ITEM_CLASSES, ItemClass
from enfold.text.harness import spans
from enfold.text.inventions import Invention, SourceText, find_inventions
from enfold.text.items import extract, items_of, texts

Fate: TypeAlias = Literal["kept", "restorable", "lost"]
FATES: tuple[Fate, ...] = ("kept", "restorable", "lost")
RestorableBy: TypeAlias = Literal["recall", "store", "ledger"]
"""The way to get an item back: the model looks it up, a program finds it in the session's history,
or a program restores the whole conversation from the ledger."""

MAX_LISTED = 200
"""Items of each fate that the JSON form lists by default."""
_MAX_NAMED = 8
"""Lost or invented items that the text form names."""


@dataclass(frozen=True, slots=True)
class ItemCount:
    """The number of items of each fate."""

    kept: int = 0
    restorable: int = 0
    lost: int = 0

    @property
    def total(self) -> int:
        """The number of all items."""
        return self.kept + self.restorable + self.lost

    @classmethod
    def of(cls, fates: Iterable[Fate]) -> ItemCount:
        """Return the count of the given fates."""
        found = list(fates)
        return cls(*(found.count(fate) for fate in FATES))

    def as_json(self) -> dict[str, int]:
        """Return the JSON form."""
        return {"kept": self.kept, "restorable": self.restorable, "lost": self.lost}


@dataclass(frozen=True, slots=True)
class Receipt:
    """The fates of the exact items of the messages that left the view."""

    items: Mapping[ItemClass, Mapping[str, Fate]]
    """The fate of every item, by class."""
    stated: Mapping[ItemClass, ItemCount]
    """The items in short messages of users and in decisions."""
    restorable_by: RestorableBy | None = None
    """The way to get restorable items back. None if there is none."""
    seconds: float = field(default=0.0, compare=False)
    """The time that it took to compute this receipt."""
    stated_unkept: Mapping[ItemClass, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """The items in short messages of users and in decisions that are not in the view."""
    warnings: tuple[str, ...] = ()
    """The floors that were not reached."""
    invented: tuple[Invention, ...] = ()
    """Items and quotations of a model's summary that its input does not have."""

    @property
    def counts(self) -> dict[ItemClass, ItemCount]:
        """The number of items of each class."""
        return {name: ItemCount.of(fates.values()) for name, fates in self.items.items()}

    @property
    def total(self) -> ItemCount:
        """The number of items of all classes."""
        return ItemCount.of(fate for fates in self.items.values() for fate in fates.values())

    def with_fate(self, fate: Fate) -> Iterator[tuple[ItemClass, str]]:
        """Yield the items of one fate, each with its class."""
        for name, fates in self.items.items():
            yield from ((name, item) for item, found in fates.items() if found == fate)

    def counts_as_json(self) -> dict[str, Any]:
        """Return the figures and what is invented, without any text of the conversation."""
        return {
            "items": {name: count.as_json() for name, count in self.counts.items()},
            "said": {name: count.as_json() for name, count in self.stated.items()},
            "restorable_by": self.restorable_by,
            "seconds": self.seconds,
            "warnings": list(self.warnings),
            "invented": [{"class": kind, "item": item} for kind, item in self.invented],
        }

    def as_json(self, limit: int | None = MAX_LISTED) -> dict[str, Any]:
        """Return the figures and at most `limit` items of each fate. None lists all items."""
        listed: dict[str, Any] = {}
        more: dict[str, int] = {}
        for fate in FATES:
            found = [{"class": name, "item": item} for name, item in self.with_fate(fate)]
            listed[fate] = found if limit is None else found[:limit]
            more[fate] = len(found) - len(listed[fate])
        return {**self.counts_as_json(), **listed, "more": more}

    def __str__(self) -> str:
        total = self.total
        invented = [f" - Not in the summary's input: {self._named_inventions}"] * bool(
            self.invented
        )
        if not total.total:
            return "\n".join(("No exact items left the view.", *invented))
        lines = [f"Exact items of what left the view: {self._describe(total)}"]
        lines += [
            f" - {name}: {self._describe(count)}"
            for name, count in self.counts.items()
            if count.total
        ]
        if total.lost:
            named = ", ".join(item for _, item in islice(self.with_fate("lost"), _MAX_NAMED))
            rest = total.lost - _MAX_NAMED
            lines.append(f" - Lost: {named}{f' and {rest:,} more' if rest > 0 else ''}")
        return "\n".join((*lines, *invented))

    @property
    def _named_inventions(self) -> str:
        named = ", ".join(item for _, item in self.invented[:_MAX_NAMED])
        rest = len(self.invented) - _MAX_NAMED
        return f"{named}{f' and {rest:,} more' if rest > 0 else ''}"

    def _describe(self, count: ItemCount) -> str:
        by = f" by {self.restorable_by}" if self.restorable_by else ""
        restorable = f"{count.restorable:,} restorable{by}, " if count.restorable else ""
        return f"{count.kept:,} kept, {restorable}{count.lost:,} lost"


def with_warnings(receipt: Receipt, *, summary_tokens: int | None = None) -> Receipt:
    """Return the receipt with a warning for each floor that it does not reach."""
    found = shortfalls(receipt, summary_tokens=summary_tokens)
    return replace(receipt, warnings=tuple(map(str, found))) if found else receipt


def make_receipt(
    gone: Sequence[Message],
    view: Sequence[Message],
    restorable: bool | Callable[[str], bool] = False,  # noqa: FBT001, FBT002 - or by item
    *,
    by: RestorableBy | None = None,
) -> Receipt:
    """Return the receipt of `gone`, the messages and texts that left the view.

    `view` is everything that the model is sent from now on, summaries included. `restorable` is
    True if items outside the view can be restored, or a function that tells it for one item; `by`
    names the way.
    """
    return ItemReview(gone, view, restorable, by=by).receipt()


class ItemReview:
    """The exact items of what leaves a view, to compare with drafts of the summary.

    The messages are read once, however many drafts there are.
    """

    def __init__(
        self,
        gone: Sequence[Message],
        kept: Sequence[Message],
        restorable: bool | Callable[[str], bool] = False,  # noqa: FBT001, FBT002 - or by item
        *,
        by: RestorableBy | None = None,
        summary_tokens: int | None = None,
    ) -> None:
        started = perf_counter()
        self._messages = (*gone, *kept)
        self._items = items_of(gone)
        self._stated = extract("\n".join(_stated_texts(gone)))
        self._kept = ViewText(kept)
        self._restorable = restorable
        self._by = by if restorable else None
        self._summary_tokens = summary_tokens
        self._seconds = perf_counter() - started

    def receipt(self, summary: str | None = None) -> Receipt:
        """Return the receipt for a view with this summary. None: `kept` is the whole view."""
        started = perf_counter()
        views = [self._kept]
        if summary is not None:
            views.append(ViewText((Message("system", (Text(summary),)),)))

        def fate_of(item: str) -> Fate:
            if any(view.contains(item) for view in views):
                return "kept"
            restorable = self._restorable
            is_restorable = restorable(item) if callable(restorable) else restorable
            return "restorable" if is_restorable else "lost"

        fates = {
            name: {item: fate_of(item) for item in found} for name, found in self._items.items()
        }
        stated = {
            name: {item: fates[name][item] for item in self._stated[name] if item in fates[name]}
            for name in ITEM_CLASSES
        }
        return Receipt(
            fates,
            {name: ItemCount.of(found.values()) for name, found in stated.items()},
            self._by,
            self._seconds + perf_counter() - started,
            {
                name: tuple(item for item, fate in found.items() if fate != "kept")
                for name, found in stated.items()
            },
        )

    def invented(self, summary: str) -> tuple[Invention, ...]:
        """Return the items and quotations of a summary that neither `gone` nor `kept` has."""
        return find_inventions(summary, self._source)

    @cached_property
    def _source(self) -> SourceText:
        return SourceText(source_of(self._messages))

    def missing(self, summary: str) -> tuple[str, ...]:
        """Return the items that a summary must mention to reach the floors, and does not."""
        found = shortfalls(self.receipt(summary), summary_tokens=self._summary_tokens)
        return tuple(dict.fromkeys(item for each in found for item in each.missing))


_WORD = re.compile(r"[A-Za-z0-9_]+")


class ViewText:
    """The text of a view, searchable for items."""

    def __init__(self, view: Sequence[Message]) -> None:
        self._text = "\n".join(texts(view))
        self._items = {item for found in items_of(view).values() for item in found}
        self._words = frozenset(_WORD.findall(self._text))

    def contains(self, item: str) -> bool:
        """Return True if the item is in the view literally, and not as a part of a longer word."""
        # Nearly all items of the view were extracted from it, and of nearly all other items some
        # word is missing, so the text itself is rarely searched.
        if item in self._items:
            return True
        if not self._words.issuperset(_WORD.findall(item)):
            return False
        text = self._text
        start = text.find(item)
        while start >= 0:
            end = start + len(item)
            continues = end < len(text) and _is_one_word(text[end - 1], text[end])
            if not continues and not (start and _is_one_word(text[start - 1], text[start])):
                return True
            start = text.find(item, start + 1)
        return False


def _is_one_word(left: str, right: str) -> bool:
    """Return True if two neighbouring characters belong to one word.

    Words of unspaced scripts have no visible borders, so only ASCII is compared.
    """
    return all(each.isascii() and (each.isalnum() or each == "_") for each in (left, right))


def source_of(messages: Sequence[Message]) -> Iterator[str]:
    """Yield everything that a summarizer can read of messages, the names of tools included."""
    for message in messages:
        yield message.name or ""
        if message.at is not None:
            yield message.at.date().isoformat()
        for part in message.parts:
            if isinstance(part, ToolCall):
                yield part.name
                arguments = part.arguments
                yield arguments if isinstance(arguments, str) else dump_text(arguments)
            elif isinstance(part, ToolResult):
                yield text_of((part,))
            elif isinstance(part, Text):
                yield part.text
    yield from texts(messages)


_MAX_TYPED = 2_000
"""Characters. Longer texts were pasted: a file, a log, the output of a tool."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")  # noqa: RUF001 - other scripts' full stops


def _stated_texts(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the texts that users typed, and the sentences in which a model states a decision."""
    for message in messages:
        for part in message.parts:
            if not isinstance(part, Text):
                continue
            if message.role == "user":
                typed = "".join(
                    part.text[start:end]
                    for start, end, kind in spans(part.text)
                    if kind == "person"
                )
                if len(typed) <= _MAX_TYPED:
                    yield typed
            elif message.role == "assistant" and _states_decision(part.text):
                for line in filter(_states_decision, part.text.split("\n")):
                    yield from filter(_states_decision, _SENTENCE_END.split(line))


def _states_decision(text: str) -> bool:
    lower = text.lower().replace("’", "'")
    return any(phrase in lower for phrase in DECISION_PHRASES)


@dataclass(frozen=True, slots=True)
class Floors:
    """The least share of items of each class, 0 to 1; a class that is not named has no floor."""

    within_reach: Mapping[ItemClass, float]
    """Kept or restorable, of all items."""
    stated: Mapping[ItemClass, float]
    """Kept, of the items in users' words and in decisions."""

    def __post_init__(self) -> None:
        for floors in (self.within_reach, self.stated):
            for name, share in floors.items():
                if name not in ITEM_CLASSES or not 0 <= share <= 1:
                    raise ConfigError(
                        f"floor {name!r} is {share!r}: expected 0 to 1 for one of "
                        f"{', '.join(ITEM_CLASSES)}"
                    )


_STATED: Mapping[ItemClass, float] = {**dict.fromkeys(ITEM_CLASSES, 0.2), "url": 0.1}

FLOORS = Floors(dict.fromkeys(ITEM_CLASSES, 0.9), _STATED)
"""For compressions whose messages can be restored."""
FLOORS_WITHOUT_RESTORE = Floors(
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
    _STATED,
)
"""For compressions that cannot be undone: the summary is all that is left."""

TOKENS_PER_ITEM = 150
"""Tokens of a summary for each item that a floor may require: the item and its sentence."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A floor that a receipt does not reach."""

    reached: int
    required: int
    total: int
    floor: float
    what: str
    """The items and where they should be, for the message."""
    missing: tuple[str, ...]
    """Items that would reach the floor if they were in the view: the first that are missing."""

    def __str__(self) -> str:
        return (
            f"{self.reached:,} of {self.total:,} ({self.reached / self.total:.0%}) {self.what}, "
            f"where at least {self.floor:.1%} are expected"
        )


def shortfalls(
    receipt: Receipt, floors: Floors | None = None, *, summary_tokens: int | None = None
) -> tuple[Shortfall, ...]:
    """Return the floors that the receipt does not reach.

    The default floors depend on whether items are restorable. `summary_tokens` is the length that
    the summary was allowed, which limits the number of required items. None is no limit.
    """
    chosen = floors or (FLOORS_WITHOUT_RESTORE if receipt.restorable_by is None else FLOORS)
    most = None if summary_tokens is None else summary_tokens // TOKENS_PER_ITEM
    counts = receipt.counts
    found: list[Shortfall | None] = []
    for name, floor in chosen.within_reach.items():
        count = counts[name]
        lost = [item for item, fate in receipt.items[name].items() if fate == "lost"]
        reached, what = count.kept + count.restorable, f"{name} items are kept or restorable"
        found.append(_shortfall(floor, reached, count, most, what, lost))
    for name, floor in chosen.stated.items():
        count = receipt.stated[name]
        what = f"{name} items in users' words and decisions are kept"
        unkept = receipt.stated_unkept.get(name, ())
        found.append(_shortfall(floor, count.kept, count, most, what, unkept))
    return tuple(each for each in found if each is not None)


def _shortfall(
    floor: float,
    reached: int,
    count: ItemCount,
    most: int | None,
    what: str,
    missing: Sequence[str],
) -> Shortfall | None:
    required = int(count.total * floor)
    if most is not None:
        required = min(required, most)
    if reached >= required:
        return None
    chosen = tuple(missing[: required - reached])
    return Shortfall(reached, required, count.total, floor, what, chosen)
