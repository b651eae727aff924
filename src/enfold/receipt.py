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
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import islice
from time import perf_counter
from typing import Any, Literal, TypeAlias

from enfold.errors import ConfigError
from enfold.jsontext import dump_text
from enfold.messages import Message, Part, Text, ToolCall, ToolResult, text_of
from enfold.text import TextMemo
from enfold.text.grammar import DECISION_PHRASES, ITEM_CLASSES, ItemClass
from enfold.text.harness import is_typed, spans
from enfold.text.inventions import Invention, SourceText, find_inventions
from enfold.text.items import (
    ItemsByClass,
    extract_all,
    items_of,
    part_texts,
    texts,
    without_headings,
)
from enfold.text.words import occurrences

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
class ItemFates:
    """The fates of all exact items that left a view, found by reading every message."""

    items: Mapping[ItemClass, Mapping[str, Fate]]
    stated: Mapping[ItemClass, Mapping[str, Fate]]
    seconds: float


def _lose(
    found: Mapping[ItemClass, Mapping[str, Fate]],
) -> Mapping[ItemClass, Mapping[str, Fate]]:
    """Return the fates with every restorable item as lost."""
    lost: Fate = "lost"
    return {
        name: {item: lost if fate == "restorable" else fate for item, fate in fates.items()}
        for name, fates in found.items()
    }


@dataclass(frozen=True, eq=False)
class Receipt:
    """The fates of the exact items of the messages that left the view.

    The messages are read when `items`, `stated` or a figure of them is first asked for: most
    receipts are never opened, and reading takes several times as long as the compression.
    """

    find: Callable[[], ItemFates] = field(repr=False)
    """Returns the fates of the items."""
    restorable_by: RestorableBy | None = None
    """The way to get restorable items back. None if there is none."""
    warnings: tuple[str, ...] = ()
    """The floors that were not reached."""
    invented: tuple[Invention, ...] = ()
    """Items and quotations of a model's summary that its input does not have."""

    @cached_property
    def _fates(self) -> ItemFates:
        return self.find()

    def read(self) -> Receipt:
        """Find the fates now, and return the receipt."""
        _ = self._fates
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Receipt):
            return NotImplemented
        return self._value == other._value

    __hash__ = None  # type: ignore[assignment]

    @property
    def _value(self) -> tuple[Any, ...]:
        fates = self._fates
        return fates.items, fates.stated, self.restorable_by, self.warnings, self.invented

    @property
    def items(self) -> Mapping[ItemClass, Mapping[str, Fate]]:
        """The fate of every item, by class."""
        return self._fates.items

    @property
    def stated_fates(self) -> Mapping[ItemClass, Mapping[str, Fate]]:
        """The fate of every item in short messages of users and in decisions, by class."""
        return self._fates.stated

    @property
    def stated(self) -> dict[ItemClass, ItemCount]:
        """The number of items in short messages of users and in decisions, by class."""
        return {name: ItemCount.of(found.values()) for name, found in self._fates.stated.items()}

    @property
    def seconds(self) -> float:
        """The time that it took to read the messages."""
        return self._fates.seconds

    @property
    def counts(self) -> dict[ItemClass, ItemCount]:
        """The number of items of each class."""
        return {name: ItemCount.of(fates.values()) for name, fates in self.items.items()}

    @property
    def total(self) -> ItemCount:
        """The number of items of all classes."""
        return ItemCount.of(fate for fates in self.items.values() for fate in fates.values())

    def without_ledger(self) -> Receipt:
        """Return the receipt if the ledger is not kept: items that it would restore are lost."""

        def find() -> ItemFates:
            found = self._fates
            return ItemFates(_lose(found.items), _lose(found.stated), found.seconds)

        return replace(self, find=find, restorable_by=None)

    def with_fate(self, fate: Fate) -> Iterator[tuple[ItemClass, str]]:
        """Yield the items of one fate, each with its class."""
        for name, fates in self.items.items():
            yield from ((name, item) for item, found in fates.items() if found == fate)

    def notes_as_json(self) -> dict[str, Any]:
        """Return what was found without reading the messages, for the record of a compression."""
        return {
            "restorable_by": self.restorable_by,
            "warnings": list(self.warnings),
            "invented": [{"class": kind, "item": item} for kind, item in self.invented],
        }

    def counts_as_json(self) -> dict[str, Any]:
        """Return the figures and what is invented, without any text of the conversation."""
        return {
            "items": {name: count.as_json() for name, count in self.counts.items()},
            "said": {name: count.as_json() for name, count in self.stated.items()},
            "seconds": self.seconds,
            **self.notes_as_json(),
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
        lines = [f"Exact items of the content that left the view: {self._describe(total)}"]
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


def _unkept(fates: Mapping[str, Fate]) -> tuple[str, ...]:
    return tuple(item for item, fate in fates.items() if fate != "kept")


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

    The messages are read at most once, however many drafts there are, and only as far as a
    question needs: where everything is restorable, the floors concern stated items alone.
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
        self._gone = gone
        self._kept_messages = kept
        self._restorable = restorable
        self._by = by if restorable else None
        self._summary_tokens = summary_tokens

    def receipt(self, summary: str | None = None) -> Receipt:
        """Return the receipt for a view with this summary. None: `kept` is the whole view."""
        return Receipt(partial(self._find, summary), self._by)

    def checked_receipt(self, summary: str | None = None) -> Receipt:
        """Return the receipt with a warning for each floor that it does not reach."""
        warnings = tuple(map(str, self.shortfalls(summary)))
        return replace(self.receipt(summary), warnings=warnings)

    def shortfalls(self, summary: str | None = None) -> tuple[Shortfall, ...]:
        """Return the default floors that a view with this summary does not reach."""
        stated = self._fates(self._stated, summary)
        if self._restorable is True:
            return _stated_shortfalls(FLOORS, stated, self._most)
        items = self._fates(self._items, summary)
        return _all_shortfalls(_floors(self._by), items, stated, self._most)

    def invented(self, summary: str) -> tuple[Invention, ...]:
        """Return the items and quotations of a summary that neither `gone` nor `kept` has."""
        return find_inventions(summary, self._source)

    def missing(self, summary: str) -> tuple[str, ...]:
        """Return the items that a summary must mention to reach the floors, and does not."""
        found = self.shortfalls(summary)
        return tuple(dict.fromkeys(item for each in found for item in each.missing))

    @property
    def _most(self) -> int | None:
        return None if self._summary_tokens is None else self._summary_tokens // TOKENS_PER_ITEM

    @cached_property
    def _source(self) -> SourceText:
        return SourceText(source_of((*self._gone, *self._kept_messages)))

    @cached_property
    def _items(self) -> ItemsByClass:
        return items_of(self._gone)

    @cached_property
    def _stated(self) -> ItemsByClass:
        found = extract_all(list(_stated_texts(self._gone)))
        # A heading looks like a name, unless all messages are read.
        names = without_headings(found["name"], list(texts(self._gone)) if found["name"] else ())
        return {**found, "name": dict.fromkeys(names)}

    @cached_property
    def _kept(self) -> ViewText:
        return ViewText(self._kept_messages)

    def _find(self, summary: str | None) -> ItemFates:
        started = perf_counter()
        items = self._fates(self._items, summary)
        stated = {
            name: {item: items[name][item] for item in found if item in items[name]}
            for name, found in self._stated.items()
        }
        return ItemFates(items, stated, perf_counter() - started)

    def _fates(self, found: ItemsByClass, summary: str | None) -> dict[ItemClass, dict[str, Fate]]:
        """Return the fate of each item in a view with this summary."""
        wanted = {item for items in found.values() for item in items}
        shown: set[str] = set()
        if wanted:
            shown = self._kept.those_in(wanted)
        if wanted and summary is not None:
            shown |= ViewText((Message("system", (Text(summary),)),)).those_in(wanted - shown)

        def fate_of(item: str) -> Fate:
            if item in shown:
                return "kept"
            restorable = self._restorable
            is_restorable = restorable(item) if callable(restorable) else restorable
            return "restorable" if is_restorable else "lost"

        return {name: {item: fate_of(item) for item in items} for name, items in found.items()}


_WORD = re.compile(r"[A-Za-z0-9_]+")
_FEW = 200
"""Items that are searched in a text one by one, which takes as long as reading the text once."""


class ViewText:
    """The text of a view, searchable for items."""

    def __init__(self, view: Sequence[Message]) -> None:
        self._view = view

    @cached_property
    def _text(self) -> str:
        return "\n".join(texts(self._view))

    @cached_property
    def _items(self) -> frozenset[str]:
        return frozenset(item for found in items_of(self._view).values() for item in found)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_WORD.findall(self._text))

    def those_in(self, items: AbstractSet[str]) -> set[str]:
        """Return the items that the view has."""
        if len(items) > _FEW:
            return {item for item in items if self.contains(item)}
        # The items of the text are not extracted if the text answers by itself: an item that was
        # extracted is in the text, unless terminal colours were inside it.
        text = self._text
        is_coloured = "\x1b" in text
        return {
            item
            for item in items
            if (item in text or is_coloured) and (self._has_literally(item) or item in self._items)
        }

    def contains(self, item: str) -> bool:
        """Return True if the item is in the view literally, and not as a part of a longer word."""
        # Nearly all items of the view were extracted from it, and of nearly all other items some
        # word is missing, so the text itself is rarely searched.
        if item in self._items:
            return True
        return self._words.issuperset(_WORD.findall(item)) and self._has_literally(item)

    def _has_literally(self, item: str) -> bool:
        text = self._text
        for start in occurrences(text, item):
            end = start + len(item)
            continues = end < len(text) and _is_one_word(text[end - 1], text[end])
            if not continues and not (start and _is_one_word(text[start - 1], text[start])):
                return True
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
            if type(part) is Text and part.text[:1].isalnum():  # nearly all texts, and no JSON
                yield part.text
            else:
                yield from _source_of_part(part)


def _source_of_part(part: Part) -> Iterator[str]:
    whole = ""
    if isinstance(part, ToolCall):
        yield part.name
        arguments = part.arguments
        whole = arguments if isinstance(arguments, str) else dump_text(arguments)
    elif isinstance(part, ToolResult):
        whole = text_of((part,))
    elif isinstance(part, Text):
        whole = part.text
    yield whole
    # The values in JSON, and names of files.
    yield from (text for text in part_texts(part) if text is not whole)


_STATING = frozenset({"user", "assistant"})
_MAX_TYPED = 2_000
"""Characters. Longer texts were pasted: a file, a log, the output of a tool."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")  # noqa: RUF001 - other scripts' full stops


def _stated_texts(messages: Iterable[Message]) -> Iterator[str]:
    """Yield the texts that users typed, and the sentences in which a model states a decision."""
    for message in messages:
        role = message.role
        if role not in _STATING:
            continue
        for part in message.parts:
            if not isinstance(part, Text):
                continue
            if role == "assistant":
                if decisions := _decisions(part.text):
                    yield from decisions
                continue
            typed = whole = part.text
            if not is_typed(whole):
                theirs = (each for each in spans(whole) if each.kind == "person")
                typed = "".join(whole[each.start : each.end] for each in theirs)
            if len(typed) <= _MAX_TYPED:
                yield typed


def _find_decisions(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that state a decision."""
    if not _states_decision(text):
        return ()
    lines = filter(_states_decision, text.split("\n"))
    return tuple(
        sentence
        for line in lines
        for sentence in _SENTENCE_END.split(line)
        if _states_decision(sentence)
    )


# A message is asked about by several steps of a compression, and by the next compression again.
_decisions = TextMemo(_find_decisions, lambda found: 1 + len(found))
_ASCII_PHRASES = tuple(filter(str.isascii, DECISION_PHRASES))


def _states_decision(text: str) -> bool:
    phrases, lower = _ASCII_PHRASES, text.lower()
    if not text.isascii():
        phrases, lower = DECISION_PHRASES, lower.replace("’", "'")
    for phrase in phrases:  # noqa: SIM110 - a generator takes twice as long
        if phrase in lower:
            return True
    return False


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
    most = None if summary_tokens is None else summary_tokens // TOKENS_PER_ITEM
    chosen = floors or _floors(receipt.restorable_by)
    return _all_shortfalls(chosen, receipt.items, receipt.stated_fates, most)


def _floors(restorable_by: RestorableBy | None) -> Floors:
    return FLOORS_WITHOUT_RESTORE if restorable_by is None else FLOORS


def _all_shortfalls(
    floors: Floors,
    items: Mapping[ItemClass, Mapping[str, Fate]],
    stated: Mapping[ItemClass, Mapping[str, Fate]],
    most: int | None,
) -> tuple[Shortfall, ...]:
    found: list[Shortfall | None] = []
    for name, floor in floors.within_reach.items():
        count = ItemCount.of(items[name].values())
        lost = [item for item, fate in items[name].items() if fate == "lost"]
        reached, what = count.kept + count.restorable, f"{name} items are kept or restorable"
        found.append(_shortfall(floor, reached, count, most, what, lost))
    unreached = tuple(each for each in found if each is not None)
    return (*unreached, *_stated_shortfalls(floors, stated, most))


def _stated_shortfalls(
    floors: Floors, stated: Mapping[ItemClass, Mapping[str, Fate]], most: int | None
) -> tuple[Shortfall, ...]:
    found: list[Shortfall | None] = []
    for name, floor in floors.stated.items():
        count = ItemCount.of(stated[name].values())
        what = f"{name} items in users' words and decisions are kept"
        found.append(_shortfall(floor, count.kept, count, most, what, _unkept(stated[name])))
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
