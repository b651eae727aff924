"""The working view: what the passes so far have made of a task.

It knows of every message what is shown now, and which are folded. Content that was shortened
without loss holds only while what it points to is shown; what no longer holds is put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from enfold.condensation import Condensation, Edited, Entry, Folded, Kept, Task
from enfold.messages import Message
from enfold.recipes import Shortening
from enfold.references import unresolved
from enfold.tokens import count_messages


@dataclass(frozen=True)
class Working:
    """A task on its way."""

    task: Task
    edits: Mapping[int, Edited]
    folded: Folded | None = None

    @classmethod
    def begin(cls, task: Task) -> Working:
        """Nothing done yet."""
        return cls(task, {})

    @cached_property
    def shown(self) -> tuple[int, ...]:
        """Indexes of the messages that are not folded."""
        folded = set(self.folded.indexes) if self.folded is not None else set()
        return tuple(i for i in range(len(self.task.messages)) if i not in folded)

    @cached_property
    def tokens(self) -> int:
        """What the view takes now."""
        return Condensation("", self.entries).tokens(self.task)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """What the view is made of; the summary stands where the first message it folds stood.

        It never stands after an earlier summary that it takes in.
        """
        entries: list[Entry] = [self.edits.get(i) or Kept(i) for i in self.shown]
        if self.folded is not None:
            first = min(self.folded.indexes)
            at = min(first, self.task.previous_at) if self.task.previous is not None else first
            entries.insert(sum(i < at for i in self.shown), self.folded)
        return tuple(entries)

    def material(self, index: int) -> Message:
        """A message for whoever edits or summarizes it: without markers that point elsewhere."""
        edit = self.edits.get(index)
        return self.task.messages[index] if edit is None or edit.shortenings else edit.message

    def count(self, index: int) -> int:
        """What a message takes now."""
        return self.edits[index].tokens if index in self.edits else self.task.counts[index]

    def with_shortened(self, edits: Iterable[Edited]) -> Working:
        """With messages that were shortened without loss."""
        return replace(self, edits={**self.edits, **{edit.index: edit for edit in edits}})

    def with_edited(self, messages: Mapping[int, Message]) -> Working:
        """With messages that were edited, each if it is smaller now.

        An edit of what others point to puts those back, or has them edited too. Where that takes
        more tokens than it saves, what is pointed to stays as it is.
        """
        counts = count_messages(list(messages.values()), self.task.tokenizer)
        edits = {
            index: Edited(index, message, tokens)
            for (index, message), tokens in zip(messages.items(), counts, strict=True)
            if tokens < self.task.counts[index]
        }
        smaller = {i: edit for i, edit in edits.items() if edit.tokens < self.count(i)}
        freely = replace(self, edits={**self.edits, **smaller}).with_what_holds(edits)
        sources = self._sources
        if not sources.intersection(smaller):
            return freely
        spared = {i: edit for i, edit in smaller.items() if i not in sources}
        sparing = replace(self, edits={**self.edits, **spared})
        return freely if freely.tokens < sparing.tokens else sparing

    def with_folded(self, folded: Folded) -> Working:
        """With a summary, in place of the one that was there.

        The messages after it have other numbers now, so whatever points to one is put back.
        """
        kept = {
            index: edit
            for index, edit in self.edits.items()
            if index not in folded.indexes and not any(each.sources for each in edit.shortenings)
        }
        return replace(self, folded=folded, edits=kept)

    def with_what_holds(self, instead: Mapping[int, Edited]) -> Working:
        """Without shortened texts whose sources are no longer shown as they were.

        `instead` are edits to show in place of those; the others are shown in full again.
        """
        now = self
        while wrong := unresolved(now.messages, now.shortenings):
            edits = {i: edit for i, edit in now.edits.items() if i not in wrong}
            edits.update({i: instead[i] for i in wrong if i in instead})
            now = replace(now, edits=edits)
        return now

    @property
    def messages(self) -> dict[int, Message]:
        """What is shown of every message, by index."""
        task, edits = self.task, self.edits
        return {i: edits[i].message if i in edits else task.messages[i] for i in self.shown}

    @property
    def shortenings(self) -> dict[int, tuple[Shortening, ...]]:
        """What was shortened without loss, by the message's index."""
        return {i: edit.shortenings for i, edit in self.edits.items() if edit.shortenings}

    @property
    def _sources(self) -> set[int]:
        """The messages that others point to."""
        return {
            source.message
            for shortenings in self.shortenings.values()
            for each in shortenings
            for source in each.sources
        }
