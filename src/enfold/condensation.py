"""Condensation: what a strategy is given, what it gives back, and whether that may be used.

A strategy sees messages and counts, never a store, a dialect or a setting. It answers with one
entry per message, in order: kept, edited, or folded into a summary. `validate` then checks the
answer against the rules, so that no strategy can lose a message, break a tool pair, touch what
retention protects, or make the view larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from enfold.errors import CompressionError, NoGainError
from enfold.history import last_user_message, orphans
from enfold.messages import Message
from enfold.retention import Split


@dataclass(frozen=True, slots=True)
class Task:
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

    @property
    def tokens(self) -> int:
        """What the view takes now."""
        return sum(self.counts) + self.previous_tokens


@dataclass(frozen=True, slots=True)
class Kept:
    """The message of this index, as it is."""

    index: int


@dataclass(frozen=True, slots=True)
class Edited:
    """The message of this index with other content; ids and pairs are as before."""

    index: int
    message: Message
    tokens: int


@dataclass(frozen=True, slots=True)
class Folded:
    """Messages replaced by a summary, which stands where the first of them stood."""

    indexes: tuple[int, ...]
    text: str
    tokens: int
    """What the summary takes in the view, its fence included."""
    author: str


Entry: TypeAlias = Kept | Edited | Folded


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


@dataclass(frozen=True, slots=True)
class Condensation:
    """A strategy's answer."""

    strategy: str
    entries: tuple[Entry, ...]
    steps: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()

    def tokens(self, task: Task) -> int:
        """What the view takes afterwards."""
        folded = self.summary
        before = 0 if folded is not None else task.previous_tokens
        return before + sum(_tokens(entry, task) for entry in self.entries)

    @property
    def summary(self) -> Folded | None:
        """The summary, if there is one."""
        return next((entry for entry in self.entries if isinstance(entry, Folded)), None)


class Strategy(Protocol):
    """How a view is condensed."""

    @property
    def id(self) -> str:
        """Recorded with every snapshot it makes."""
        ...

    async def condense(self, task: Task) -> Condensation:
        """The answer to the task; `validate` has the last word on it."""
        ...


def _tokens(entry: Entry, task: Task) -> int:
    return task.counts[entry.index] if isinstance(entry, Kept) else entry.tokens


def validate(task: Task, answer: Condensation) -> None:
    """Raise `CompressionError` with the reason if the answer may not be used."""
    for check in _CHECKS:
        fault = check(task, answer)
        if fault:
            raise CompressionError(f"{answer.strategy}: {fault}; nothing was changed")
    after = answer.tokens(task)
    if after >= task.tokens:
        raise NoGainError(
            f"{answer.strategy}: {task.tokens:,} tokens became {after:,}; nothing was changed"
        )


def _accounts_for_every_message(task: Task, answer: Condensation) -> str:
    seen: list[int] = []
    for entry in answer.entries:
        seen.extend(entry.indexes if isinstance(entry, Folded) else (entry.index,))
    if sorted(seen) != list(range(len(task.messages))):
        return f"{len(task.messages)} messages went in and {len(set(seen))} are accounted for"
    shown = [entry.index for entry in answer.entries if not isinstance(entry, Folded)]
    return "" if shown == sorted(shown) else "the order of the messages changed"


def _has_one_summary_with_text(_task: Task, answer: Condensation) -> str:
    folds = [entry for entry in answer.entries if isinstance(entry, Folded)]
    if len(folds) > 1:
        return f"{len(folds)} summaries where there may be one"
    return "the summary is empty" if folds and not folds[0].text.strip() else ""


def _leaves_protected_messages_alone(task: Task, answer: Condensation) -> str:
    kept = {entry.index for entry in answer.entries if isinstance(entry, Kept)}
    protected = {*range(task.split.head), *range(task.split.cut, len(task.messages))}
    protected.update(
        index
        for index in (task.split.pinned, last_user_message(task.messages))
        if index is not None
    )
    touched = sorted(protected - kept)
    return f"message {touched[0]} is protected and was touched" if touched else ""


def _keeps_tool_pairs(task: Task, answer: Condensation) -> str:
    shown = _shown(task, answer)
    if len(orphans(shown)) > len(orphans(task.messages)):
        return f"message {orphans(shown)[0]} of the result holds a tool result without its call"
    return ""


def _shown(task: Task, answer: Condensation) -> Sequence[Message]:
    return [
        entry.message if isinstance(entry, Edited) else task.messages[entry.index]
        for entry in answer.entries
        if not isinstance(entry, Folded)
    ]


_CHECKS = (
    _accounts_for_every_message,
    _has_one_summary_with_text,
    _leaves_protected_messages_alone,
    _keeps_tool_pairs,
)
