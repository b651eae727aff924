"""The work that a process does with one conversation.

A `Work` is made once and sent to each process with every unit: it holds options, no state. It takes
one conversation as it came and returns lines of JSON; it reads and writes no file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

from enfold.bulk.files import BulkFile
from enfold.engine.results import Preview
from enfold.engine.stateless import Condensed, CondenseOptions, restore
from enfold.engine.stateless import condense as condense_conversation
from enfold.engine.stateless import preview as preview_conversation
from enfold.errors import InputError, RestoreError
from enfold.jsontext import dumps, loads
from enfold.ledger import Ledger
from enfold.settings import Settings
from enfold.strategies.contract import Strategy
from enfold.transcripts import FORMATS, Transcript, conversations, document, recognised
from enfold.transcripts.source import Record, TranscriptSource, located
from enfold.wire import AUTO
from enfold.wiring import open_priced_strategy, open_strategy

ARRAYS = frozenset({conversations.NAME, document.NAME})
"""Formats whose file is the messages themselves, in an array or a request body."""

_WARNINGS = 20
"""Warnings kept per file; the others are counted."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals over conversations: tokens, seconds and warnings."""

    JSON_FIELDS: ClassVar = (
        "conversations",
        "tokens_before",
        "tokens_after",
        "reduction",
        "seconds",
        "warnings",
        "more_warnings",
    )
    conversations: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    seconds: float = 0.0
    """Working time, summed over all processes."""
    warnings: tuple[str, ...] = ()
    more_warnings: int = 0

    @property
    def reduction(self) -> float:
        """The share of tokens removed."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0

    def plus(self, other: Totals) -> Totals:
        """Return the sum of both."""
        warnings = (*self.warnings, *other.warnings)
        dropped = max(0, len(warnings) - _WARNINGS)
        return Totals(
            self.conversations + other.conversations,
            self.tokens_before + other.tokens_before,
            self.tokens_after + other.tokens_after,
            self.seconds + other.seconds,
            warnings[:_WARNINGS],
            self.more_warnings + other.more_warnings + dropped,
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Totals:
        """Return the totals that `to_json` wrote."""
        given = {each.name: value[each.name] for each in fields(cls)}
        return cls(**{**given, "warnings": tuple(value["warnings"])})


@dataclass(frozen=True, slots=True)
class BulkItem:
    """One conversation, unparsed if possible."""

    given: Record | Transcript = field(repr=False)
    place: str = ""
    """For errors."""
    size: int = 0
    """Its bytes in the file; 0 if unknown."""
    ledger: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class ItemResult:
    """The result of one conversation, as lines of JSON."""

    result: bytes = field(repr=False)
    ledger: bytes = field(default=b"", repr=False)
    tally: Totals = field(default_factory=Totals)


BulkItems: TypeAlias = tuple[bool, Iterator[BulkItem]]
"""True for an array of conversations, and an iterator over them."""


class BulkTask(Protocol):
    """A task for every conversation."""

    @property
    def writes_ledgers(self) -> bool:
        """True if the task writes ledgers."""

    @property
    def key(self) -> str:
        """A digest of the options."""

    def inputs(self, place: BulkFile) -> tuple[Path, ...]:
        """Return the input files."""

    def units(self, place: BulkFile) -> AbstractContextManager[BulkItems]:
        """Open a file and yield its conversations."""

    def do(self, unit: BulkItem) -> ItemResult:
        """Return one conversation's result or raise `EnfoldError`."""


async def condense_transcript(
    transcript: Transcript, strategy: Strategy, options: CondenseOptions
) -> Condensed:
    """The active branch, condensed. Other branches of the same array are the ledger's to give back.

    Those of a log are not: what comes out of it is an array, of the one branch that was asked for.
    """
    branch = transcript.conversation()
    others = len(transcript.entries) - len(branch.messages)
    if not others or transcript.format not in ARRAYS:
        return await condense_conversation(branch, strategy, options)
    done = await condense_conversation(branch, strategy, options, whole=transcript.whole())
    messages = "1 message" if others == 1 else f"{others:,} messages"
    warning = f"{messages} of other branches left out; the ledger has them"
    return replace(done, report=replace(done.report, warnings=(*done.report.warnings, warning)))


@dataclass(frozen=True, slots=True)
class CondenseTask:
    """Condenses conversations."""

    settings: Settings
    options: CondenseOptions
    dialect: str = AUTO
    profile: str | None = None
    """The profile whose model writes summaries. None: the built-in summarizer."""

    writes_ledgers = True

    @property
    def key(self) -> str:
        """A digest of everything that determines the result."""
        options = (self.settings, self.options, self.dialect, self.profile)
        return blake2b(repr(options).encode(), digest_size=16).hexdigest()

    def inputs(self, place: BulkFile) -> tuple[Path, ...]:
        """The file itself."""
        return (place.source,)

    @contextmanager
    def units(self, place: BulkFile) -> Iterator[BulkItems]:
        """Its conversations; of JSON Lines with one a line only a few are held at a time."""
        with recognised(place.source, dialect=self.dialect) as (name, source):
            yield _is_array(name, source), self._units(name, source)

    def _units(self, name: str, source: TranscriptSource) -> Iterator[BulkItem]:
        if name == conversations.NAME:
            for record in source.records:
                yield BulkItem(record, record.at, len(record.text) + 1)
            return
        for number, transcript in enumerate(FORMATS[name].read(source, self.dialect), 1):
            yield BulkItem(transcript, f"conversation {number}")

    def do(self, unit: BulkItem) -> ItemResult:
        """The condensed conversation, its ledger, and the figures of its report."""
        transcript = unit.given
        if isinstance(transcript, Record):
            with located(transcript.place):
                value = transcript.value()
                transcript = conversations.transcript_of(value, self.dialect, conversations.NAME)
        done = asyncio.run(self.condense(transcript))
        report = done.report
        warnings = tuple(f"{unit.place}: {warning}" for warning in report.warnings)
        tally = Totals(1, report.tokens_before, report.tokens_after, report.seconds, warnings)
        return ItemResult(dumps(done.messages), dumps(done.ledger.as_json()), tally)

    async def condense(self, transcript: Transcript) -> Condensed:
        """One conversation, condensed."""
        async with open_strategy(self.settings, self.profile) as strategy:
            return await condense_transcript(transcript, strategy, self.options)

    async def preview(self, transcript: Transcript) -> Preview:
        """Return the expected result for one conversation; no model is called."""
        async with open_priced_strategy(self.settings, self.profile) as (strategy, price_of):
            branch = transcript.conversation()
            return await preview_conversation(branch, strategy, self.options, price_of)


@dataclass(frozen=True, slots=True)
class RestoreTask:
    """Restores condensed conversations."""

    writes_ledgers = False
    key = "restore"

    def inputs(self, place: BulkFile) -> tuple[Path, ...]:
        """The condensed file and its ledger."""
        return (place.source, place.ledger)

    @contextmanager
    def units(self, place: BulkFile) -> Iterator[BulkItems]:
        """The condensed conversations, each with its ledger."""
        with (
            recognised(place.source) as (name, source),
            recognised(place.ledger, format=conversations.NAME) as (_, ledgers),
        ):
            yield _is_array(name, source), _with_ledgers(name, source, ledgers)

    def do(self, unit: BulkItem) -> ItemResult:
        """Return the original conversation."""
        if not isinstance(unit.given, Record):
            raise RestoreError(f"{unit.place}: expected a condensed conversation")
        ledger = Ledger.from_json(loads(unit.ledger))
        try:
            restored = restore(unit.given.value(), ledger)
        except RestoreError as error:
            raise RestoreError(f"{unit.place}: {error}") from None
        return ItemResult(dumps(restored), tally=Totals(1))


def _is_array(name: str, source: TranscriptSource) -> bool:
    """True for an array of conversations; one of messages is a conversation."""
    return source.layout == "array" and name != document.NAME


def _with_ledgers(
    name: str, source: TranscriptSource, ledgers: TranscriptSource
) -> Iterator[BulkItem]:
    records = source.records if name == conversations.NAME else _as_one(source)
    for record in records:
        ledger = next(ledgers.records, None)
        if ledger is None:
            raise RestoreError(f"{ledgers.file}: fewer ledgers than conversations")
        yield BulkItem(record, record.place, len(record.text) + 1, ledger.text)
    if next(ledgers.records, None) is not None:
        raise RestoreError(f"{source.file}: fewer conversations than {ledgers.file} has ledgers")


def _as_one(source: TranscriptSource) -> Iterator[Record]:
    """Return the whole file as one conversation."""
    parts = [record.text for record in source.records]
    if not parts and source.layout == "value":
        raise InputError("the file is empty", place=source.file)
    text = parts[0] if source.layout == "value" else b"[" + b",".join(parts) + b"]"
    yield Record(text, source.file)
