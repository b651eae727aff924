"""Condensation: what a strategy is given, what it gives back, and whether that may be used.

A strategy sees messages and counts, never a store, a dialect or a setting. It answers with one
entry per message, in order: kept, edited, or folded into a summary. `validate` then checks the
answer against the rules, so that no strategy can lose a message, break a tool pair, touch what
retention protects, damage what it edits, or make the view larger.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from enfold.errors import CompressionError, InputError, NoGainError
from enfold.history import (
    follows_reasoning,
    last_user_message,
    open_loop_start,
    orphans,
    unanswered,
)
from enfold.jsontext import loads
from enfold.ledger import Shortening, explains, unresolved
from enfold.messages import Attachment, Message, Reasoning, Text, ToolCall, ToolResult, Unknown
from enfold.receipt import Receipt, RestorableBy, check, make_receipt
from enfold.retention import Split, Zones


@dataclass(frozen=True, slots=True)
class Plan:
    """A view to condense: its messages without the summary, which is given beside them."""

    messages: tuple[Message, ...]
    counts: tuple[int, ...]
    split: Split
    tokenizer: str
    previous: str | None = None
    """The summary that the view shows now, as text. None if it shows none."""
    previous_tokens: int = 0
    """What that summary takes in the view."""
    previous_at: int = 0
    """Where it stands: before the message of this index."""
    summary_tokens: int = 1_000
    """The limit of the new summary."""
    show_recent: bool = True
    """Whether the summarizer may see what comes after the cutoff."""
    target: int | None = None
    """Tokens at or below which the view should end. None: as small as it gets."""
    is_due: bool = False
    """True if the target must be reached, so that another strategy takes over if one does not."""
    zones: Zones | None = None
    """Where messages may be edited. None: where they may be folded."""
    static_tokens: int = 0
    """Tokens of what is sent beside the view: system prompt and tools."""
    restorable_by: RestorableBy | None = None
    """How what leaves the view can be had again. None: it cannot."""
    originals: Mapping[int, Message] = field(default_factory=dict, repr=False)
    """What messages said before an earlier compression edited them, by index."""

    def original(self, index: int) -> Message:
        """A message for whoever summarizes it: as it was said, edited since or not."""
        return self.originals.get(index, self.messages[index])

    @property
    def tokens(self) -> int:
        """What the view takes now."""
        return sum(self.counts) + self.previous_tokens

    @property
    def editable(self) -> tuple[int, ...]:
        """Indexes of the messages that may be edited: old, and in no way protected."""
        old = (self.zones or Zones(self.split.head, self.split.cut)).old
        protected = self.protected
        return tuple(index for index in old if index not in protected)

    @property
    def protected(self) -> frozenset[int]:
        """What no edit may change, however old.

        That is the last thing a user said, a running tool loop, and reasoning that is an item of
        its own with the item that follows it: providers check those for changes.
        """
        messages = self.messages
        found = set(range(open_loop_start(messages), len(messages)))
        found.update(i for i in (last_user_message(messages), self.split.pinned) if i is not None)
        for index in range(1, len(messages)):
            if follows_reasoning(messages, index):
                found.update((index - 1, index))
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class KeptMessage:
    """The message of this index, as it is."""

    index: int


@dataclass(frozen=True, slots=True)
class EditedMessage:
    """The message of this index with other content; ids and pairs are as before."""

    index: int
    message: Message
    tokens: int
    shortenings: tuple[Shortening, ...] = ()
    """The texts that were shortened without loss, if that is all that was done."""

    @property
    def lossless(self) -> bool:
        """True if all that it said is still in the view, here or in another message."""
        shortened = self.shortenings
        return bool(shortened) and all(each.recipe.is_reference for each in shortened)


@dataclass(frozen=True, slots=True)
class SummarizedMessages:
    """Messages replaced by a summary, which stands where the first of them stood."""

    indexes: tuple[int, ...]
    text: str
    tokens: int
    """What the summary takes in the view, its fence included."""
    author: str


CondensationEntry: TypeAlias = KeptMessage | EditedMessage | SummarizedMessages


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a strategy, for the report."""

    name: str
    tokens_before: int
    tokens_after: int

    @property
    def reduction(self) -> float:
        """The share of the tokens that the step took away."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "name": self.name,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "reduction": self.reduction,
        }


@dataclass(frozen=True, slots=True)
class Condensation:
    """A strategy's answer."""

    strategy: str
    entries: tuple[CondensationEntry, ...]
    steps: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    """What was done and what was skipped, by name: `<id>_completed`, `skip_<id>`."""
    cost: float | None = 0.0
    """Of the models that were called, in US dollars. None is unknown."""
    receipt: Receipt | None = None
    """What became of the exact items, once the answer was accepted."""

    def tokens(self, plan: Plan) -> int:
        """What the view takes afterwards."""
        folded = self.summary
        before = 0 if folded is not None else plan.previous_tokens
        return before + sum(_tokens(entry, plan) for entry in self.entries)

    @property
    def summary(self) -> SummarizedMessages | None:
        """The summary, if there is one."""
        return next(
            (entry for entry in self.entries if isinstance(entry, SummarizedMessages)), None
        )

    @property
    def edits(self) -> tuple[EditedMessage, ...]:
        """The messages that are shown with other content."""
        return tuple(entry for entry in self.entries if isinstance(entry, EditedMessage))

    @property
    def is_unchanged(self) -> bool:
        """True if the view stays as it was."""
        return all(isinstance(entry, KeptMessage) for entry in self.entries)


def unchanged(plan: Plan, strategy: str, why: str) -> Condensation:
    """The answer of a strategy that found nothing to do, and why."""
    return Condensation(
        strategy, tuple(map(KeptMessage, range(len(plan.messages)))), warnings=(why,)
    )


def with_middle_summarized(plan: Plan, folded: SummarizedMessages) -> tuple[CondensationEntry, ...]:
    """The entries of an answer that folds the middle; head, tail and what is pinned stay."""
    split = plan.split
    return (
        *map(KeptMessage, range(split.head)),
        folded,
        *(() if split.pinned is None else (KeptMessage(split.pinned),)),
        *map(KeptMessage, range(split.cut, len(plan.messages))),
    )


def _tokens(entry: CondensationEntry, plan: Plan) -> int:
    return plan.counts[entry.index] if isinstance(entry, KeptMessage) else entry.tokens


def validate(plan: Plan, answer: Condensation, *, may_be_unchanged: bool = False) -> None:
    """Raise `CompressionError` with the reason if the answer may not be used.

    One that is not smaller is a `NoGainError`, unless it says that nothing is to be changed and
    that is fine.
    """
    for rule in _CHECKS:
        fault = rule(plan, answer)
        if fault:
            raise CompressionError(f"{answer.strategy}: {fault}; nothing was changed")
    after = answer.tokens(plan)
    if after >= plan.tokens and not (may_be_unchanged and answer.is_unchanged):
        raise NoGainError(
            f"{answer.strategy}: {plan.tokens:,} tokens became {after:,}; nothing was changed"
        )


def _accounts_for_every_message(plan: Plan, answer: Condensation) -> str:
    seen: list[int] = []
    for entry in answer.entries:
        seen.extend(entry.indexes if isinstance(entry, SummarizedMessages) else (entry.index,))
    if sorted(seen) != list(range(len(plan.messages))):
        return f"{len(plan.messages)} messages went in and {len(set(seen))} are accounted for"
    shown = [entry.index for entry in answer.entries if not isinstance(entry, SummarizedMessages)]
    return "" if shown == sorted(shown) else "the order of the messages changed"


def _has_one_summary_with_text(_task: Plan, answer: Condensation) -> str:
    folds = [entry for entry in answer.entries if isinstance(entry, SummarizedMessages)]
    if len(folds) > 1:
        return f"{len(folds)} summaries where there may be one"
    return "the summary is empty" if folds and not folds[0].text.strip() else ""


def _folds_what_may_be_folded(plan: Plan, answer: Condensation) -> str:
    folded = set(answer.summary.indexes) if answer.summary is not None else set()
    protected = {*range(plan.split.head), *range(plan.split.cut, len(plan.messages))}
    protected.update(
        index
        for index in (plan.split.pinned, last_user_message(plan.messages))
        if index is not None
    )
    touched = sorted(protected & folded)
    return f"message {touched[0]} is protected and was folded" if touched else ""


def _edits_what_may_be_edited(plan: Plan, answer: Condensation) -> str:
    if not answer.edits:
        return ""
    editable, protected = set(plan.editable), plan.protected
    for edit in answer.edits:
        if edit.index in protected or not (edit.lossless or edit.index in editable):
            return f"message {edit.index} is protected and was edited"
    return ""


def _keeps_tool_pairs(plan: Plan, answer: Condensation) -> str:
    shown = _shown(plan, answer)
    if len(orphans(shown)) > len(orphans(plan.messages)):
        return f"message {orphans(shown)[0]} of the result holds a tool result without its call"
    if len(unanswered(shown)) > len(unanswered(plan.messages)):
        return f"message {unanswered(shown)[0]} of the result holds a tool call without its result"
    return ""


def _edits_keep_the_shape(plan: Plan, answer: Condensation) -> str:
    for edit in answer.edits:
        fault = _misshapen(plan.messages[edit.index], edit.message)
        if fault:
            return f"message {edit.index}: the edit {fault}"
    return ""


def _shortenings_hold(plan: Plan, answer: Condensation) -> str:
    """Whether all that was left out without loss is in view, or set aside to be put back."""
    edits = {edit.index: edit.shortenings for edit in answer.edits if edit.shortenings}
    if not edits:
        return ""
    shown = {
        entry.index: entry.message
        if isinstance(entry, EditedMessage)
        else plan.messages[entry.index]
        for entry in answer.entries
        if not isinstance(entry, SummarizedMessages)
    }
    for index, shortenings in edits.items():
        if not explains(plan.messages[index], shown[index], shortenings):
            return f"message {index} was changed in more than the texts that were shortened"
    faults = unresolved(shown, edits)
    return next((f"message {index} {fault}" for index, fault in faults.items()), "")


def _misshapen(before: Message, after: Message) -> str:
    """What an edit did that none may do. Empty if it kept to the rules."""
    if _frame(before) != _frame(after):
        return "changed who speaks, or the message's id"
    if list(_skeleton(before)) != list(_skeleton(after)):
        return "lost or changed a tool call, a result's id or error, or an attachment"
    if any(isinstance(part, Reasoning) for part in after.parts):
        return "kept reasoning, which is signed for the message as it was"
    return ""


def _frame(message: Message) -> tuple[Any, ...]:
    return (message.role, message.id, message.name, message.dialect)


def _skeleton(message: Message) -> Iterator[Any]:
    """What of a message an edit leaves as it is: all but words, arguments and reasoning."""
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
    """Whether a call's arguments are a JSON object, or a text that holds one."""
    if not isinstance(arguments, str):
        return True
    try:
        return isinstance(loads(arguments), dict)
    except InputError:
        return False


def _shown(plan: Plan, answer: Condensation) -> Sequence[Message]:
    return [
        entry.message if isinstance(entry, EditedMessage) else plan.messages[entry.index]
        for entry in answer.entries
        if not isinstance(entry, SummarizedMessages)
    ]


_CHECKS = (
    _accounts_for_every_message,
    _has_one_summary_with_text,
    _folds_what_may_be_folded,
    _edits_what_may_be_edited,
    _keeps_tool_pairs,
    _edits_keep_the_shape,
    _shortenings_hold,
)


def accept(plan: Plan, answer: Condensation, *, may_be_unchanged: bool = False) -> Condensation:
    """The answer with its receipt; `CompressionError` with the reason if it may not be used.

    One that is not smaller is a `NoGainError`, unless it says that nothing is to be changed and
    that is fine.
    """
    validate(plan, answer, may_be_unchanged=may_be_unchanged)
    if answer.receipt is not None:
        return answer
    made = receipt_for(plan, answer)
    check(made, summary_tokens=plan.summary_tokens if answer.summary is not None else None)
    return replace(answer, receipt=made)


def receipt_for(plan: Plan, answer: Condensation) -> Receipt:
    """What becomes of the exact items of what the answer folds, or takes out by editing."""
    gone = tuple(_gone(plan, answer))
    view = tuple(_view(plan, answer)) if gone else ()
    return make_receipt(gone, view, plan.restorable_by is not None, by=plan.restorable_by)


def _gone(plan: Plan, answer: Condensation) -> Iterator[Message]:
    """What the view no longer says: folded messages, an earlier summary, the edited parts."""
    for entry in answer.entries:
        if isinstance(entry, SummarizedMessages):
            if plan.previous is not None:
                yield Message("system", (Text(plan.previous),))
            yield from (plan.original(index) for index in entry.indexes)
        elif isinstance(entry, EditedMessage):
            yield taken_out(plan.original(entry.index), entry.message)


def taken_out(said: Message, shown: Message) -> Message:
    """A message with only those of its parts that an edit did not leave as they were."""
    return replace(said, parts=tuple(part for part in said.parts if part not in shown.parts))


def _view(plan: Plan, answer: Condensation) -> Iterator[Message]:
    """What the model is sent."""
    if answer.summary is None and plan.previous is not None:
        yield Message("system", (Text(plan.previous),))
    for entry in answer.entries:
        if isinstance(entry, SummarizedMessages):
            yield Message("system", (Text(entry.text),))
        else:
            yield entry.message if isinstance(entry, EditedMessage) else plan.messages[entry.index]
