"""Condensation: a strategy's plan, its answer, and the checks that the answer must pass.

A strategy sees messages and counts, never a store, a wire format or a setting. Its answer has one
entry per message, in order: kept, edited, or part of a summary. `validate` checks the answer
against the rules, so that no strategy can lose a message, separate a tool call from its result,
change a protected message, damage a message that it edits, or make the view larger.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from enfold.errors import CompressionError, InputError, NoGainError
from enfold.history import (
    last_user_message,
    open_loop_start,
    orphans,
    signed_replies,
    unanswered,
)
from enfold.jsontext import loads
from enfold.ledger import ContentReference, PieceSource, Shortening, explains, unresolved
from enfold.messages import (
    Attachment,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    text_of,
)
from enfold.receipt import ItemReview, Receipt, RestorableBy
from enfold.retention import Split, Zones
from enfold.text.inventions import Invention
from enfold.tokens import count_messages, get

TIGHTEST_SUMMARY = 64
"""The lowest limit of a summary, in tokens."""


@dataclass(frozen=True)
class Plan:
    """The input of a strategy: a view divided into head, middle and tail, and the goal.

    The messages do not include the summary that the view shows now; it is a field of its own.
    """

    messages: tuple[Message, ...]
    counts: tuple[int, ...]
    """The tokens of each message."""
    split: Split
    """The division into head, middle and tail. The middle is empty if nothing is summarized."""
    tokenizer: str
    previous: str | None = None
    """Text of the summary that the view shows now. None if it shows none."""
    previous_tokens: int = 0
    """Tokens of that summary in the view."""
    previous_at: int = 0
    """The summary stands before the message of this index."""
    summary_tokens: int = 1_000
    """The limit of the new summary."""
    show_recent: bool = True
    """True if the summarizer may read the messages after the cutoff."""
    recent_end: int | None = None
    """The index of the first recent message that it may not read. None: it may read all."""
    target: int | None = None
    """Tokens at or below which the view should end. None: as small as possible."""
    is_due: bool = False
    """True if the target must be reached: another strategy takes over if the first misses it."""
    zones: Zones | None = None
    """Places at which messages may be edited. None: in the middle of the split."""
    static_tokens: int = 0
    """Tokens sent with every request besides the view: system prompt and tools."""
    restorable_by: RestorableBy | None = None
    """The way to restore content that leaves the view. None: there is none."""
    originals: Mapping[int, Message] = field(default_factory=dict, repr=False)
    """Messages as they were before an earlier compression edited them, by index."""
    excerpts: Mapping[int, EditedMessage] = field(default_factory=dict, repr=False)
    """Parts of kept messages of the middle that are shown in place of the whole, by index."""
    quotes: Mapping[int, str] = field(default_factory=dict, repr=False)
    """Words of people in summarized messages, which the summary quotes word for word."""
    summary_at: int = sys.maxsize
    """The summary stands before the message of this index, or before the first it replaces."""
    standing_tokens: int = 0
    """Tokens of standing instructions, pins and rules in the view."""
    rules_left_out: int = 0
    """Messages with rules that leave the view, because rules need too much of it."""
    shortened: int = 0
    """Messages that must stay and are shown in part, because the view would not fit otherwise."""
    expected_tokens: int = 0
    """Tokens of the view after the middle is summarized, at most."""
    tail_start: int = 0
    """Index of the first message of the tail, also if nothing is summarized."""
    is_tightened: bool = False
    """True if less stays verbatim, or the summary is shorter, than requested."""

    def original(self, index: int) -> Message:
        """Return a message without the edits of earlier compressions."""
        return self.originals.get(index, self.messages[index])

    def originals_of(self, indexes: Iterable[int]) -> Iterator[Message]:
        """Return messages without the edits of earlier compressions."""
        return map(self.original if self.originals else self.messages.__getitem__, indexes)

    @cached_property
    def summarized(self) -> tuple[int, ...]:
        """The indexes of the messages that a summary replaces."""
        return self.split.summarized

    @property
    def to_summarize(self) -> tuple[Message, ...]:
        """The messages that a summary replaces, and what excerpts leave out, in order."""
        if not self.excerpts:
            return tuple(self.originals_of(self.summarized))
        return tuple(
            removed_parts(self.original(index), self.excerpts[index].message)
            if index in self.excerpts
            else self.original(index)
            for index in self.split.middle
            if index not in self.split.kept or index in self.excerpts
        )

    @property
    def stays(self) -> tuple[Message, ...]:
        """The kept messages of the middle and the tail, which a summarizer reads as context."""
        kept = self._kept_of_middle
        tail = self.messages[self.split.cut : self.recent_end] if self.show_recent else ()
        return (*map(self.messages.__getitem__, kept), *tail)

    @property
    def _kept_of_middle(self) -> list[int]:
        middle = self.split.middle
        return sorted(index for index in self.split.kept if index in middle)

    def without(self, indexes: tuple[int, ...]) -> list[int]:
        """Return the indexes of all other messages, in order."""
        if indexes == self.summarized:
            split, end = self.split, len(self.messages)
            return [*range(split.head), *self._kept_of_middle, *range(split.middle.stop, end)]
        return sorted(set(range(len(self.messages))).difference(indexes))

    @property
    def tokens(self) -> int:
        """Tokens of the view now."""
        return sum(self.counts) + self.previous_tokens

    @cached_property
    def editable(self) -> tuple[int, ...]:
        """Indexes of the messages that may be edited: the old ones that are not protected."""
        protected = self.protected
        return tuple(index for index in self._zones.old if index not in protected)

    @cached_property
    def protected(self) -> frozenset[int]:
        """Indexes of the messages that no edit may change, however old they are.

        These are the last user message, what retention keeps in the middle or at the end of a
        running tool loop, calls that wait for their result, and replies that providers check for
        changes.
        """
        messages = self.messages
        loop = open_loop_start(messages)
        found = {*range(max(self._zones.recent, loop), len(messages)), *self.split.kept}
        found.update(index for index in unanswered(messages) if index >= loop)
        found.update(signed_replies(messages))
        last = last_user_message(messages)
        if last is not None:
            found.add(last)
        return frozenset(found)

    @property
    def _zones(self) -> Zones:
        return self.zones or Zones(self.split.head, self.split.cut)


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """Entry: the message of this index stays as it is."""

    index: int


@dataclass(frozen=True, slots=True)
class EditedMessage:
    """Entry: the message of this index with other content; ids and tool pairs are unchanged."""

    index: int
    message: Message
    tokens: int
    shortenings: tuple[Shortening, ...] = ()
    """The texts that were shortened without loss, if the edit did nothing else."""

    @property
    def lossless(self) -> bool:
        """True if the whole content is still in the view, here or in another message."""
        shortened = self.shortenings
        return bool(shortened) and all(each.recipe.is_reference for each in shortened)


@dataclass(frozen=True, slots=True)
class SummarizedMessages:
    """Entry: a summary and the messages it replaces. It stands in place of the first of them."""

    indexes: tuple[int, ...]
    text: str
    tokens: int
    """Tokens of the summary in the view, its fence included."""
    author: str


CondensationEntry: TypeAlias = KeptMessage | EditedMessage | SummarizedMessages


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a strategy, for the report."""

    name: str
    tokens_before: int
    tokens_after: int
    saved_by: Mapping[str, int] = field(default_factory=dict)
    """The tokens that each operation saved, such as `truncate tool_results`."""

    @property
    def reduction(self) -> float:
        """Share of the tokens that the step removed, 0 to 1."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the step as JSON."""
        return {
            "name": self.name,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "reduction": self.reduction,
            **({"saved_by": dict(self.saved_by)} if self.saved_by else {}),
        }


_FILES = ("file_path", "path", "filename", "file")
_COMMANDS = ("command", "cmd", "script")


@dataclass(frozen=True, slots=True)
class Condensation:
    """A strategy's answer: one entry per message, and how it was made."""

    strategy: str
    entries: tuple[CondensationEntry, ...]
    steps: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    """Names of what was done and what was skipped: `<id>_completed`, `skip_<id>`."""
    cost: float | None = 0.0
    """Cost of the model calls in US dollars. None is unknown."""
    invented: tuple[Invention, ...] = ()
    """Items and quotations of its summaries that their inputs do not have."""
    receipt: Receipt | None = None
    """Exact items kept and lost; set when the answer is accepted."""

    def tokens(self, plan: Plan) -> int:
        """Return the tokens of the view after the condensation."""
        total = plan.previous_tokens if self.summary is None else 0
        for entry in self.entries:
            total += plan.counts[entry.index] if isinstance(entry, KeptMessage) else entry.tokens
        return total

    def shown(self, plan: Plan) -> dict[int, Message]:
        """Return the messages that stay in the view, edited or not, by index."""
        return {
            entry.index: entry.message
            if isinstance(entry, EditedMessage)
            else plan.messages[entry.index]
            for entry in self.entries
            if not isinstance(entry, SummarizedMessages)
        }

    @property
    def summary(self) -> SummarizedMessages | None:
        """The summary. None if there is none."""
        for entry in self.entries:
            if isinstance(entry, SummarizedMessages):
                return entry
        return None

    @property
    def edits(self) -> tuple[EditedMessage, ...]:
        """The messages that are shown with other content."""
        return tuple(entry for entry in self.entries if isinstance(entry, EditedMessage))

    def references(self, plan: Plan) -> tuple[ContentReference, ...]:
        """Return the references of shortened texts to those that show their content."""
        if not self.edits:
            return ()
        calls = {
            part.id: part
            for message in plan.messages
            for part in message.parts
            if isinstance(part, ToolCall)
        }
        shown = {**dict(enumerate(plan.messages)), **{e.index: e.message for e in self.edits}}
        return tuple(
            _reference(edit.index, source, shortening.recipe.digest, shown[source.message], calls)
            for edit in self.edits
            for shortening in edit.shortenings
            for source in shortening.sources
            if source.message != edit.index
        )

    @property
    def is_unchanged(self) -> bool:
        """True if the view stays as it was."""
        return all(isinstance(entry, KeptMessage) for entry in self.entries)


def _reference(
    index: int, source: PieceSource, digest: str, message: Message, calls: Mapping[str, ToolCall]
) -> ContentReference:
    """Return the reference to a text that the message shows."""
    call = None
    for part in message.parts:
        if isinstance(part, ToolCall):
            call = part
        elif isinstance(part, ToolResult):
            call = calls.get(part.call_id)
            if source.text in text_of((part,)):
                break
    arguments = call.arguments if call is not None else {}
    if isinstance(arguments, str):
        try:
            arguments = loads(arguments)
        except InputError:
            arguments = {}
    named = arguments if isinstance(arguments, Mapping) else {}
    path = next((named[name] for name in _FILES if isinstance(named.get(name), str)), None)
    is_command = any(name in named for name in _COMMANDS)
    return ContentReference(
        "output" if is_command else "tool_result" if path is None else "file",
        index,
        source.message,
        path,
        call.name if call is not None else None,
        digest,
    )


def unchanged(plan: Plan, strategy: str, why: str) -> Condensation:
    """Return the answer of a strategy that found nothing to do, with a reason as a warning."""
    entries = tuple(map(KeptMessage, range(len(plan.messages))))
    return Condensation(strategy, entries, warnings=(why,) if why else ())


def with_middle_summarized(
    plan: Plan, summary: SummarizedMessages
) -> tuple[CondensationEntry, ...]:
    """Return the entries of an answer that replaces the middle by the summary."""
    # A summary that continues another one stands where that one stood.
    at = min(plan.summary_at, *summary.indexes)
    if plan.previous is not None:
        at = min(at, plan.previous_at)
    stays = plan.without(summary.indexes)
    kept = [plan.excerpts.get(index, KeptMessage(index)) for index in stays]
    before = sum(entry.index < at for entry in kept)
    return (*kept[:before], summary, *kept[before:])


def accept(plan: Plan, answer: Condensation, *, may_be_unchanged: bool = False) -> Condensation:
    """Return the answer with its receipt; raise `CompressionError` if it may not be used.

    A floor of the receipt that is not reached is a warning, not an error: strategies mend what
    they can, and a view with fewer items is better than none.
    """
    if answer.receipt is None:
        answer = recounted(plan, answer)
    validate(plan, answer, may_be_unchanged=may_be_unchanged)
    if answer.receipt is not None:
        return answer
    made = replace(_review_of(plan, answer).checked_receipt(), invented=answer.invented)
    return replace(answer, receipt=made, warnings=(*answer.warnings, *made.warnings))


def recounted(plan: Plan, answer: Condensation) -> Condensation:
    """Return the answer with tokens that were counted here, whatever the strategy reported."""
    counts = iter(count_messages([edit.message for edit in answer.edits], plan.tokenizer))
    entries: list[CondensationEntry] = []
    for entry in answer.entries:
        match entry:
            case EditedMessage():
                entries.append(replace(entry, tokens=next(counts)))
            case SummarizedMessages(text=text):
                # The fence is a few tokens more, which only the summary's writer counts.
                fewest = get(plan.tokenizer).count(text)
                entries.append(replace(entry, tokens=max(entry.tokens, fewest)))
            case KeptMessage():
                entries.append(entry)
    return replace(answer, entries=tuple(entries))


def validate(plan: Plan, answer: Condensation, *, may_be_unchanged: bool = False) -> None:
    """Raise `CompressionError` with the reason if the answer may not be used.

    An answer that is not smaller raises `NoGainError`. With `may_be_unchanged` an answer that
    changes nothing passes.
    """
    check_rules(plan, answer)
    after = answer.tokens(plan)
    if after >= plan.tokens and not (may_be_unchanged and answer.is_unchanged):
        raise no_gain(answer, plan.tokens, after)


def no_gain(answer: Condensation, before: int, after: int) -> NoGainError:
    """Return the error for an answer that is not smaller than the view was."""
    return NoGainError(
        f"{answer.strategy}: {before:,} tokens became {after:,}; nothing was changed"
    )


def check_rules(plan: Plan, answer: Condensation) -> None:
    """Raise `CompressionError` if the answer breaks a rule, whatever its size."""
    for rule in _RULES:
        fault = rule(plan, answer)
        if fault:
            raise CompressionError(f"{answer.strategy}: {fault}; nothing was changed")


# Each rule returns what is wrong with an answer, or an empty text.


def _accounts_for_every_message(plan: Plan, answer: Condensation) -> str:
    found: list[int] = []
    for entry in answer.entries:
        found.extend(entry.indexes if isinstance(entry, SummarizedMessages) else (entry.index,))
    if sorted(found) != list(range(len(plan.messages))):
        return f"{len(plan.messages)} messages went in and {len(set(found))} are accounted for"
    shown = list(answer.shown(plan))
    return "" if shown == sorted(shown) else "the order of the messages changed"


def _has_one_summary_with_text(_plan: Plan, answer: Condensation) -> str:
    summaries = [entry for entry in answer.entries if isinstance(entry, SummarizedMessages)]
    if len(summaries) > 1:
        return f"{len(summaries)} summaries where there may be one"
    return "the summary is empty" if summaries and not summaries[0].text.strip() else ""


def _summarizes_only_the_middle(plan: Plan, answer: Condensation) -> str:
    if answer.summary is None:
        return ""
    indexes = answer.summary.indexes
    # Nearly all summaries replace exactly what the plan says.
    touched = set() if indexes == plan.summarized else set(indexes).difference(plan.summarized)
    last = last_user_message(plan.messages)
    if last is not None and last in indexes:
        touched.add(last)
    return f"message {min(touched)} is protected and was summarized" if touched else ""


def _edits_no_protected_message(plan: Plan, answer: Condensation) -> str:
    if not answer.edits:
        return ""
    editable, protected = set(plan.editable), plan.protected
    for edit in answer.edits:
        if edit == plan.excerpts.get(edit.index):
            continue
        if edit.index in protected or not (edit.lossless or edit.index in editable):
            return f"message {edit.index} is protected and was edited"
    return ""


def _keeps_tool_pairs(plan: Plan, answer: Condensation) -> str:
    shown = list(answer.shown(plan).values())
    found = orphans(shown)
    if found and len(found) > len(orphans(plan.messages)):
        return f"message {found[0]} of the result holds a tool result without its call"
    found = unanswered(shown)
    if found and len(found) > len(unanswered(plan.messages)):
        return f"message {found[0]} of the result holds a tool call without its result"
    return ""


def _edits_keep_the_shape(plan: Plan, answer: Condensation) -> str:
    for edit in answer.edits:
        fault = _misshapen(plan.messages[edit.index], edit.message)
        if fault:
            return f"message {edit.index}: the edit {fault}"
    return ""


def _shortenings_hold(plan: Plan, answer: Condensation) -> str:
    """Check that every text removed without loss is in the view, or in the edit's recipe."""
    edits = {edit.index: edit.shortenings for edit in answer.edits if edit.shortenings}
    if not edits:
        return ""
    shown = answer.shown(plan)
    for index, shortenings in edits.items():
        if not explains(plan.messages[index], shown[index], shortenings):
            return f"message {index} was changed in more than the texts that were shortened"
    faults = unresolved(shown, edits)
    return next((f"message {index} {fault}" for index, fault in faults.items()), "")


def _misshapen(before: Message, after: Message) -> str:
    """Return the name of the part that an edit must not change and changed, or an empty text."""
    if _frame(before) != _frame(after):
        return "changed the role, name, dialect or id of the message"
    if list(_skeleton(before)) != list(_skeleton(after)):
        return "lost or changed a tool call, a result's id or error, or an attachment"
    if any(isinstance(part, Reasoning) for part in after.parts):
        return "kept reasoning, which is signed for the message as it was"
    has_results = any(isinstance(part, ToolResult) for part in after.parts)
    if has_results and _number_of_texts(after) > _number_of_texts(before):
        return "added text beside a tool result"
    return ""


def _number_of_texts(message: Message) -> int:
    return sum(isinstance(part, Text) for part in message.parts)


def _frame(message: Message) -> tuple[Any, ...]:
    return (message.role, message.id, message.name, message.dialect)


def _skeleton(message: Message) -> Iterator[Any]:
    """Yield what an edit leaves as it is: everything but words, arguments and reasoning."""
    for part in message.parts:
        match part:
            case ToolCall(id, name, arguments):
                yield id, name, _is_object(arguments)
            case ToolResult(id, inner, is_error, name):
                files = tuple(each for each in inner if isinstance(each, Attachment | Unknown))
                yield id, name, is_error, files
            case Attachment() | Unknown():
                yield part


def _is_object(arguments: Any) -> bool:
    """Return True if a call's arguments are a JSON object, or a text that holds one."""
    if not isinstance(arguments, str):
        return True
    try:
        return isinstance(loads(arguments), dict)
    except InputError:
        return False


_RULES = (
    _accounts_for_every_message,
    _has_one_summary_with_text,
    _summarizes_only_the_middle,
    _edits_no_protected_message,
    _keeps_tool_pairs,
    _edits_keep_the_shape,
    _shortenings_hold,
)


def receipt_for(plan: Plan, answer: Condensation) -> Receipt:
    """Return the receipt of the exact items that the answer takes out of the view."""
    return _review_of(plan, answer).receipt()


def _review_of(plan: Plan, answer: Condensation) -> ItemReview:
    """Return the review of the answer's whole view."""
    removed = tuple(_removed(plan, answer))
    return ItemReview(
        removed,
        tuple(_view(plan, answer)) if removed else (),
        plan.restorable_by is not None,
        by=plan.restorable_by,
        summary_tokens=plan.summary_tokens if answer.summary is not None else None,
    )


def review_for(plan: Plan, answer: Condensation) -> ItemReview:
    """Return the review of the summary that the answer has a place for, whatever its text."""
    return ItemReview(
        tuple(_removed(plan, answer)),
        tuple(answer.shown(plan).values()),
        plan.restorable_by is not None,
        by=plan.restorable_by,
        summary_tokens=plan.summary_tokens,
    )


def _removed(plan: Plan, answer: Condensation) -> Iterator[Message]:
    """Yield the content that leaves the view: messages, an earlier summary, the edited parts."""
    for entry in answer.entries:
        if isinstance(entry, SummarizedMessages):
            if plan.previous is not None:
                yield Message("system", (Text(plan.previous),))
            yield from plan.originals_of(entry.indexes)
        elif isinstance(entry, EditedMessage):
            yield removed_parts(plan.original(entry.index), entry.message)


def removed_parts(original: Message, shown: Message) -> Message:
    """Return the message with only those of its parts that an edit changed or removed."""
    return replace(
        original, parts=tuple(part for part in original.parts if part not in shown.parts)
    )


def _view(plan: Plan, answer: Condensation) -> Iterator[Message]:
    """Yield the messages that the model is sent, the summary first."""
    summary = plan.previous if answer.summary is None else answer.summary.text
    if summary is not None:
        yield Message("system", (Text(summary),))
    yield from answer.shown(plan).values()
