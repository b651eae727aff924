"""The working view: what the passes so far have made of a task.

It knows of every message what is shown now, and which are folded. Content that was shortened
without loss holds only while what it points to is shown; what no longer holds is put back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from enfold.condensation import Condensation, Edited, Entry, Folded, Kept, Task
from enfold.messages import Message
from enfold.recipes import Shortening
from enfold.references import unresolved
from enfold.retention import Split, Zones
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
            entries.insert(self._place(self._summary_at), self.folded)
        return tuple(entries)

    def material(self, index: int) -> Message:
        """A message for whoever edits or summarizes it: without markers that point elsewhere."""
        edit = self.edits.get(index)
        return self.task.messages[index] if edit is None or edit.shortenings else edit.message

    def count(self, index: int) -> int:
        """What a message takes now."""
        return self.edits[index].tokens if index in self.edits else self.task.counts[index]

    @property
    def rest(self) -> Task:
        """What is shown as a task of its own, for a strategy that knows nothing of the others."""
        task, messages = self.task, self.messages
        zones = task.zones or Zones(task.split.head, task.split.cut)
        first, recent = self._place(zones.first), self._place(zones.recent)
        return replace(
            task,
            messages=tuple(messages[i] for i in self.shown),
            counts=tuple(self.count(i) for i in self.shown),
            split=Split(first, recent, None, tail_tokens=0, overshoot=0),
            zones=Zones(first, recent),
            previous=self.folded.text if self.folded is not None else task.previous,
            previous_tokens=self.folded.tokens if self.folded is not None else task.previous_tokens,
            previous_at=self._place(self._summary_at),
            originals={},
        )

    def with_shortened(self, edits: Iterable[Edited]) -> Working:
        """With messages of the rest that were shortened without loss.

        What was edited before is not shortened as well: it could no longer be told how it was.
        """
        shown = self.shown
        new = {shown[edit.index]: _renumbered(edit, shown) for edit in edits}
        fresh = {index: edit for index, edit in new.items() if index not in self.edits}
        return replace(self, edits={**self.edits, **fresh}).with_what_holds({})

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

    @property
    def _summary_at(self) -> int:
        """The index before which the summary stands."""
        previous_at = self.task.previous_at
        if self.folded is None:
            return previous_at
        first = min(self.folded.indexes)
        return min(first, previous_at) if self.task.previous is not None else first

    def _place(self, index: int) -> int:
        """How many of the messages shown stand before an index."""
        return bisect_left(self.shown, index)


def _renumbered(edit: Edited, shown: Sequence[int]) -> Edited:
    """An edit of the rest with the indexes of the whole."""
    shortenings = tuple(
        replace(
            each,
            sources=tuple(
                replace(source, message=shown[source.message]) for source in each.sources
            ),
        )
        for each in edit.shortenings
    )
    return replace(edit, index=shown[edit.index], shortenings=shortenings)
