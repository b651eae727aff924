"""Refill: a view made as large as its goal allows, and no larger.

Messages return to a condensed view while the goal allows it: a summary may come out shorter than
its limit, and a pass may remove more than the goal needs. Whole groups of messages return, newest
first. If all remaining groups are too large, some return with their long texts shortened. Where
messages that must stay do not fit, they are shown in part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from enfold.condensation import (
    Condensation,
    CondensationEntry,
    EditedMessage,
    KeptMessage,
    Plan,
    SummarizedMessages,
)
from enfold.history import answers_a_call, cut_points, last_user_message, signed_replies
from enfold.ledger import texts_in
from enfold.messages import (
    Data,
    Message,
    Part,
    Reasoning,
    ResultPart,
    Text,
    ToolCall,
    ToolResult,
)
from enfold.strategies.shortened_text import TextLimits, map_arguments, map_texts, truncate
from enfold.tokens import count_message, get

ENOUGH = 0.85
"""Share of the goal from which no message is shortened to fill the rest."""
_TIGHTER = (0.9, 0.75, 0.5, 0.3)
"""Shares of the available tokens that messages are cut to, until they fit."""

Entries: TypeAlias = dict[int, KeptMessage | EditedMessage]
"""The messages that are shown, by index."""


def refill(plan: Plan, answer: Condensation, goal: int) -> Condensation:
    """Return the answer with as many messages put back as the goal allows."""
    entries = {entry.index: entry for entry in _single(answer)}
    summarized = _summarized(answer)
    tokens = answer.tokens(plan)
    groups = list(pairwise(cut_points(plan.messages)))
    references = _References(plan, answer)
    for first, end in reversed(groups):
        changed = {index for index in range(first, end) if _is_changed(plan, entries, index)}
        changed |= references.broken_by(changed)
        extra = sum(plan.counts[index] - _shown_tokens(plan, entries, index) for index in changed)
        # A summary must stand for something.
        has_no_rest = bool(summarized) and summarized.issubset(changed)
        if not changed or extra > goal - tokens or has_no_rest:
            continue
        entries.update((index, KeptMessage(index)) for index in changed)
        summarized.difference_update(changed)
        tokens += extra
    for first, end in reversed(groups):
        if tokens >= goal * ENOUGH:
            break
        changed = {index for index in range(first, end) if _is_changed(plan, entries, index)}
        if not changed or changed & references.targets:
            continue  # what points to them would have to return in full
        before = sum(_shown_tokens(plan, entries, index) for index in changed)
        if answer.summary is not None and summarized and summarized.issubset(changed):
            # The summary goes if all that it stands for is shown again, unless it has more to tell.
            if plan.previous is not None or plan.quotes:
                continue
            before += answer.summary.tokens
        longer = _shortened_group(plan, sorted(changed), goal - tokens + before)
        after = sum(edit.tokens for edit in longer.values())
        if after > before:
            entries.update(longer)
            summarized.difference_update(longer)
            tokens += after - before
    filled = _in_order(plan, answer, entries, summarized)
    # The receipt told of messages that are back in the view.
    return answer if filled == answer.entries else replace(answer, entries=filled, receipt=None)


class _References:
    """The edits of an answer that point to other messages, by the message that they point to."""

    def __init__(self, plan: Plan, answer: Condensation) -> None:
        self._plan = plan
        self._pointers: dict[int, list[tuple[int, str]]] = {}
        for edit in answer.edits:
            for shortening in edit.shortenings:
                for source in shortening.sources:
                    self._pointers.setdefault(source.message, []).append((edit.index, source.text))

    @property
    def targets(self) -> AbstractSet[int]:
        """The messages that others point to."""
        return self._pointers.keys()

    def broken_by(self, put_back: Iterable[int]) -> set[int]:
        """Return the edits that must be put back too if these messages are.

        A marker may point to a text that was shortened itself. With the whole text in its place
        the marker's lines or numbers would no longer be there.
        """
        found: set[int] = set()
        waiting = list(put_back)
        while waiting:
            target = waiting.pop()
            pointers = self._pointers.get(target, ())
            whole = frozenset(texts_in(self._plan.messages[target])) if pointers else frozenset()
            new = {index for index, text in pointers if text not in whole} - found
            found |= new
            waiting.extend(new)
        return found


def _single(answer: Condensation) -> Iterator[KeptMessage | EditedMessage]:
    return (entry for entry in answer.entries if not isinstance(entry, SummarizedMessages))


def _summarized(answer: Condensation) -> set[int]:
    return set() if answer.summary is None else set(answer.summary.indexes)


def _is_changed(plan: Plan, entries: Entries, index: int) -> bool:
    """Return True if a message left the view or lost content, except for an excerpt."""
    entry = entries.get(index)
    return entry is None or (isinstance(entry, EditedMessage) and index not in plan.excerpts)


def _shown_tokens(plan: Plan, entries: Entries, index: int) -> int:
    match entries.get(index):
        case EditedMessage(tokens=tokens):
            return tokens
        case KeptMessage():
            return plan.counts[index]
    return 0


def _shortened_group(plan: Plan, group: Sequence[int], most: int) -> dict[int, EditedMessage]:
    """Return the messages of a group, cut so that they take no more tokens; empty if impossible."""
    editable = set(plan.editable)
    whole = sum(plan.counts[index] for index in group)
    if not editable.issuperset(group):
        return {}
    for share in _TIGHTER:
        edits = {index: _shortened_message(plan, index, share * most / whole) for index in group}
        if sum(edit.tokens for edit in edits.values()) <= most:
            return edits
    return {}


def _shortened_message(
    plan: Plan, index: int, share: float, edits: Mapping[int, EditedMessage] | None = None
) -> EditedMessage:
    """Return a message, or its edit if it has one, with its texts cut to a share."""
    edit = edits.get(index) if edits else None
    message = plan.messages[index] if edit is None else edit.message
    cut = shortened(message, share, plan.tokenizer)
    return EditedMessage(index, cut, count_message(cut, plan.tokenizer))


def shortened(message: Message, share: float, tokenizer: str) -> Message:
    """Return the message with each long text cut to its beginning and end."""

    def cut(text: str) -> str:
        limits = TextLimits(chars=max(80, int(len(text) * share)), head_and_tail=True)
        return truncate(text, limits, get(tokenizer))

    def cut_part(part: ResultPart) -> ResultPart:
        match part:
            case Text():
                return replace(part, text=cut(part.text))
            case Data():
                return replace(part, value=map_texts(part.value, cut))
        return part

    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(replace(part, text=cut(part.text)))
        elif isinstance(part, ToolCall):
            parts.append(map_arguments(part, cut) or part)
        elif isinstance(part, ToolResult):
            parts.append(replace(part, parts=tuple(map(cut_part, part.parts))))
        elif not isinstance(part, Reasoning):
            parts.append(part)
    return replace(message, parts=tuple(parts))


def shortened_to(messages: Sequence[Message], most: int, tokenizer: str) -> tuple[Message, ...]:
    """Return the messages, their long texts cut so that all take at most this many tokens."""
    total = sum(count_message(message, tokenizer) for message in messages)
    cut = tuple(messages)
    for tighter in _TIGHTER if total > most else ():
        cut = tuple(shortened(message, tighter * most / total, tokenizer) for message in messages)
        if sum(count_message(message, tokenizer) for message in cut) <= most:
            break
    return cut


_MIN_SHORTENED = 200
"""Tokens. A shorter message that must stay is never shown in part."""
_GRADES: tuple[Callable[[Message], bool], ...] = (
    lambda message: message.role not in {"system", "user"} or answers_a_call(message),
    lambda message: message.role == "user",
    lambda message: message.role == "system",
)
"""Order of shortening: results and replies, then texts of users, then instructions."""


def shorten_staying(plan: Plan, most: int, *, grades: int = len(_GRADES)) -> Plan:
    """Return the plan with long messages that must stay shown in part, as far as `most` needs it.

    Replies that providers check for changes stay whole. The first of the `grades` are results and
    replies, the second texts of users. With all of them instructions follow, then the last user
    message.
    """
    expected = plan.tokens if plan.split.is_empty else plan.expected_tokens
    edits = dict(plan.excerpts)
    gone = {*plan.split.summarized, *signed_replies(plan.messages)}
    last = last_user_message(plan.messages)
    stays = [index for index in range(len(plan.messages)) if index not in gone]
    by_grade = [
        [i for i in stays if i != last and is_next(plan.messages[i])]
        for is_next in _GRADES[:grades]
    ]
    if grades == len(_GRADES) and last in stays:
        by_grade.append([last])

    def size(index: int) -> int:
        return edits[index].tokens if index in edits else plan.counts[index]

    shortened_indexes: set[int] = set()
    for grade in by_grade:
        long = [index for index in grade if size(index) > _MIN_SHORTENED]
        over, total = expected - most, sum(map(size, long))
        if over <= 0 or not long:
            continue
        for tighter in (1.0, *_TIGHTER):
            share = max(0.02, 1 - over / total) * tighter
            cut = {index: _shortened_message(plan, index, share, edits) for index in long}
            if sum(edit.tokens for edit in cut.values()) <= total - over:
                break
        expected += sum(edit.tokens for edit in cut.values()) - total
        edits.update(cut)
        shortened_indexes.update(cut)
    return replace(
        plan,
        excerpts=edits,
        split=replace(plan.split, kept=plan.split.kept | shortened_indexes),
        shortened=len(shortened_indexes),
        expected_tokens=expected,
    )


def _in_order(
    plan: Plan,
    answer: Condensation,
    entries: Entries,
    summarized: set[int],
) -> tuple[CondensationEntry, ...]:
    """Return the entries in order, the summary where it stood or before its first message."""
    single = [entries[index] for index in sorted(entries)]
    summary = answer.summary
    if summary is None or not summarized:
        return tuple(single)
    stood_before = next(
        (
            entry.index
            for entry in answer.entries[answer.entries.index(summary) + 1 :]
            if not isinstance(entry, SummarizedMessages)
        ),
        len(plan.messages),
    )
    at = min(*summarized, stood_before, plan.previous_at if plan.previous else stood_before)
    before = sum(entry.index < at for entry in single)
    rest = replace(summary, indexes=tuple(sorted(summarized)))
    return (*single[:before], rest, *single[before:])
