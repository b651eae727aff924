"""The lossless strategy, step by step: obsolete state, encodings, consolidation, repeats, blocks.

Each step leaves what the steps before it point to as it is, so that every marker in the result
stands for a text that the view shows in full.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from enfold.condensation import Condensation, Edited, Entry, Kept, Step, Task, unchanged
from enfold.encodings import ENCODINGS, encode
from enfold.messages import Message
from enfold.places import Path
from enfold.recipes import Shortening
from enfold.retention import Retention
from enfold.strategies.contract import Capabilities, Cost, Kind, Means, Prices, Reduction
from enfold.strategies.lossless.blocks import Names, fold_blocks
from enfold.strategies.lossless.config import LosslessConfig
from enfold.strategies.lossless.drafts import Draft, shortening
from enfold.strategies.lossless.obsolete import take_out_obsolete
from enfold.strategies.lossless.operations import path_of
from enfold.strategies.lossless.repeats import Reach, consolidate, fold_repeats
from enfold.strategies.lossless.texts import Right, pointed_at, texts_of, with_texts
from enfold.tokens import Tokenizer, count_messages, get
from enfold.view import USER_ROLE_SUMMARIES


@dataclass(frozen=True, slots=True)
class Lossless:
    """What a view says twice it says once."""

    config: LosslessConfig
    means: Means

    id = "lossless"

    @property
    def retention(self) -> Retention:
        """The first and the newest messages."""
        config = self.config
        return Retention("messages", config.preserve_recent_count, config.preserve_first_count)

    def touches(self, task: Task) -> tuple[int, ...]:
        """Messages with results of tools that may be shortened."""
        shown = texts_of(task)
        return tuple(dict.fromkeys(each.message for each in shown if each.right))

    async def condense(self, task: Task) -> Condensation:
        """The task with markers for what is in view already."""
        return await asyncio.to_thread(shorten, task, self.config)

    async def estimate_reduction(self, task: Task) -> Reduction:
        """Exactly what it will be: it costs nothing to try."""
        return Reduction(task.tokens, (await self.condense(task)).tokens(task))

    async def estimate_cost(self, task: Task, prices: Prices | None = None) -> Cost:  # noqa: ARG002
        """Nothing: nobody is asked."""
        return Cost(dollars=0.0)


def shorten(task: Task, config: LosslessConfig | None = None) -> Condensation:
    """The task with markers for what is in view already."""
    left_alone: set[int] = set()
    while True:
        work = _Work(task, config or LosslessConfig(), left_alone)
        steps = work.run()
        entries = work.entries()
        larger = {
            entry.index
            for entry in entries
            if isinstance(entry, Edited) and entry.tokens >= task.counts[entry.index]
        }
        if not larger:
            break
        left_alone |= larger  # single markers pay, and all together once in a blue moon do not
    if all(isinstance(entry, Kept) for entry in entries):
        return unchanged(task, Lossless.id, "nothing is said twice")
    operations = tuple(f"{step.name}_completed" for step in steps)
    return Condensation(Lossless.id, entries, steps, operations=operations)


KIND = Kind(
    id="lossless",
    name="Lossless",
    description="What is said twice is said once; nothing is lost, and no model is asked",
    capabilities=Capabilities(lossless=True, individual=True, multi_pass=True),
    config=LosslessConfig,
    make=Lossless,
)


class _Work:
    """One run of the strategy."""

    def __init__(self, task: Task, config: LosslessConfig, left_alone: AbstractSet[int]) -> None:
        self._task = task
        self._config = config
        self._tokenizer: Tokenizer = get(task.tokenizer)
        self._numbers = numbers_of(task)
        texts = texts_of(task)
        self._drafts = [Draft.of(shown) for shown in texts]
        frozen = left_alone | pointed_at(texts, self._numbers.__getitem__)
        for draft in self._drafts:
            if draft.was.message in frozen:
                draft.right = Right.NOTHING
        self._shown: list[str] = []
        """What each draft comes to by now."""
        self._edited: dict[int, Message] = {}
        """The messages that are no longer as they were, by index."""
        self._counts: dict[int, int] = {}
        """Their tokens."""

    def run(self) -> tuple[Step, ...]:
        """Do every step that is asked for, and say what each took away."""
        config = self._config
        asked: tuple[tuple[str, bool, Callable[[], None]], ...] = (
            ("state_cleanup", config.remove_obsolete_state, self._take_out_obsolete),
            ("reencoding", config.reencode, self._reencode),
            ("result_consolidation", config.consolidate_tool_results, self._consolidate),
            ("file_deduplication", config.deduplicate_file_reads, self._fold_repeats),
            ("block_deduplication", config.deduplicate_blocks, self._fold_blocks),
        )
        steps: list[Step] = []
        tokens = self._task.tokens
        for name, is_asked, work in asked:
            if is_asked:
                before = tokens
                work()
                tokens = self._count()
                steps.append(Step(name, before, tokens))
        return tuple(steps)

    def entries(self) -> tuple[Entry, ...]:
        """One entry for every message."""
        drafts, shown, edited = self._drafts, self._shown, self._edited
        shortenings: dict[int, list[Shortening]] = {index: [] for index in edited}
        for index, draft in enumerate(drafts):
            if draft.is_changed:
                shortenings[draft.was.message].append(shortening(drafts, index, shown))
        return tuple(
            Edited(index, edited[index], self._counts[index], tuple(shortenings[index]))
            if index in edited
            else Kept(index)
            for index in range(len(self._task.messages))
        )

    def _count(self) -> int:
        """The tokens of the view as it is now."""
        task = self._task
        self._shown = [draft.shown() for draft in self._drafts]
        self._edited = self._with_shown()
        counts = count_messages(tuple(self._edited.values()), self._tokenizer)
        self._counts = dict(zip(self._edited, counts, strict=True))
        return task.tokens + sum(counts) - sum(task.counts[index] for index in self._edited)

    def _with_shown(self) -> dict[int, Message]:
        """The messages that are no longer as they were, by index."""
        changed: dict[int, dict[tuple[int, int, Path], str]] = {}
        for draft, text in zip(self._drafts, self._shown, strict=True):
            if draft.is_changed:
                place = (draft.was.part, draft.was.inner, draft.was.path)
                changed.setdefault(draft.was.message, {})[place] = text
        messages = self._task.messages
        return {index: with_texts(messages[index], texts) for index, texts in changed.items()}

    def _take_out_obsolete(self) -> None:
        take_out_obsolete(
            self._drafts,
            self._config.obsolete,
            self._numbers,
            self._tokenizer,
            self._config.min_saving,
        )

    def _reencode(self) -> None:
        names = [name for name in ENCODINGS if name in self._config.encodings.names]
        candidates: list[tuple[Draft, str, list[tuple[str, object]]]] = []
        for draft in self._drafts:
            if draft.right is Right.ANYTHING and not draft.holes and not draft.is_whole:
                text, applied = _encoded(draft.text, names)
                if applied:
                    candidates.append((draft, text, applied))
        before = self._tokenizer.count_many([draft.text for draft, _, _ in candidates])
        after = self._tokenizer.count_many([text for _, text, _ in candidates])
        for (draft, text, applied), was, now in zip(candidates, before, after, strict=True):
            if was - now >= self._config.min_saving:
                draft.text, draft.encodings = text, applied

    def _reach(self) -> Reach:
        return Reach(
            self._numbers,
            self._tokenizer,
            self._config.min_saving,
            self._config.keep == "last",
        )

    def _consolidate(self) -> None:
        consolidate(self._drafts, self._reach())

    def _fold_repeats(self) -> None:
        fold_repeats(self._drafts, self._reach())

    def _fold_blocks(self) -> None:
        drafts = self._drafts
        order = range(len(drafts))
        fold_blocks(
            drafts,
            reversed(order) if self._config.keep == "last" else order,
            Names(self._numbers, _which(drafts), [_file(draft) for draft in drafts]),
            self._tokenizer,
            self._config.min_saving,
        )


def numbers_of(task: Task) -> list[int]:
    """The number of every message in the view, counted from 1, with the summary among them."""
    messages, at = task.messages, task.previous_at
    beside = messages[max(0, at - 1) : at + 1]
    is_merged = any(m.role == "user" and m.dialect in USER_ROLE_SUMMARIES for m in beside)
    is_message = task.previous is not None and not is_merged
    return [
        index + 2 if is_message and index >= at else index + 1 for index in range(len(messages))
    ]


def _encoded(text: str, names: Sequence[str]) -> tuple[str, list[tuple[str, object]]]:
    """The text in all encodings that help, one after the other."""
    applied: list[tuple[str, object]] = []
    for name in names:
        found = encode(name, text)
        if found is not None:
            text, how = found
            applied.append((name, how))
    return text, applied


def _which(drafts: Sequence[Draft]) -> list[int]:
    """For every draft which of several results of its message it is; 0 for an only one."""
    sizes: dict[int, int] = {}
    which = [0] * len(drafts)
    for index, draft in enumerate(drafts):
        if draft.was.is_result:
            sizes[draft.was.message] = which[index] = sizes.get(draft.was.message, 0) + 1
    return [
        0 if sizes.get(draft.was.message, 0) <= 1 else which[index]
        for index, draft in enumerate(drafts)
    ]


def _file(draft: Draft) -> str | None:
    call = draft.was.call
    return None if call is None else path_of(call)
