"""Passes: which messages one selects, and what it makes of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil

from enfold.condensation import Folded, Task
from enfold.errors import CompressionError, SummaryError
from enfold.history import answers_a_call, cut_points, last_user_message
from enfold.messages import Message, Text
from enfold.planning import TIGHTEST_SUMMARY
from enfold.strategies.contract import Means
from enfold.strategies.instructions import is_instruction, is_worth_folding
from enfold.strategies.smart.config import Pass, Selection, SummarizationConfig
from enfold.strategies.smart.operations import (
    Editor,
    Wanted,
    marked,
    operations_for,
    texts_to_summarize,
)
from enfold.strategies.smart.working import Working
from enfold.strategies.writing import fold
from enfold.summaries import (
    Summarizer,
    Summary,
    SummaryRequest,
    fence_tokens,
    summary_tokens,
)
from enfold.tokens import get


@dataclass(frozen=True, slots=True)
class Crew:
    """Who writes summaries in one run, what it has cost, and what there is to say of it."""

    means: Means
    turns: asyncio.Semaphore
    costs: list[float | None] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    async def write(self, profile: str | None, request: SummaryRequest) -> Summary:
        """A summary by the profile's model, when it is its turn."""
        async with self.turns:
            summary = await fold(self._summarizer(profile), request)
        self.costs.append(summary.cost)
        self._warn(*summary.notes)
        return summary

    def _summarizer(self, profile: str | None) -> Summarizer:
        """The profile's; the one in use, and a warning, where there is no such profile."""
        if profile is None:
            return self.means.summarizer
        try:
            return self.means.by_profile(profile)
        except SummaryError as error:
            self._warn(f"{error}; {self.means.summarizer.name} writes instead")
            return self.means.summarizer

    def _warn(self, *notes: str) -> None:
        self.warnings.extend(note for note in notes if note not in self.warnings)


def selected(selection: Selection, working: Working) -> tuple[int, ...]:
    """Indexes of the messages that a pass processes, of those that are still shown.

    System messages are instructions, and left alone unless their role is asked for.
    """
    shown, messages = working.shown, working.task.messages
    if selection.type == "custom":
        found = [
            index
            for index in shown
            if (selection.indexes is None or index in selection.indexes)
            and (selection.roles is None or messages[index].role in selection.roles)
        ]
    else:
        percent = selection.keep_percentage or 0.0
        spared = (
            selection.keep_recent_count or 0
            if selection.type == "preserve_recent"
            else ceil(len(shown) * percent / 100)
        )
        found = list(shown[: max(0, len(shown) - spared)])
    allowed = selection.roles or ()
    return tuple(
        index for index in found if "system" in allowed or not is_instruction(messages[index])
    )


def touched(step: Pass, working: Working) -> frozenset[int]:
    """Indexes of the messages that a pass may fold or edit."""
    if step.mode == "batch":
        return _to_fold(step, working)
    return frozenset(selected(step.selection, working)).intersection(working.task.editable)


async def run(step: Pass, working: Working, crew: Crew) -> Working:
    """What the pass makes of the view."""
    return await (_batch if step.mode == "batch" else _individual)(step, working, crew)


async def _batch(step: Pass, working: Working, crew: Crew) -> Working:
    """Old messages become one summary, which takes in the one before."""
    new = _to_fold(step, working)
    if not new or step.batch_config is None:
        return working
    how = step.batch_config.summarization_config
    task, earlier = working.task, working.folded
    tokens = sum(working.count(index) for index in new)
    request = SummaryRequest(
        messages=tuple(_material(working, index) for index in sorted(new)),
        previous=earlier.text if earlier is not None else task.previous,
        recent=_recent(working, new) if task.show_recent else (),
        max_tokens=_room_for_summary(working, tokens),
        tokenizer=task.tokenizer,
        prompt=how.custom_prompt,
    )
    summary = await crew.write(how.api_profile, request)
    indexes = tuple(sorted({*new, *(earlier.indexes if earlier is not None else ())}))
    size = summary_tokens(summary.text, task.tokenizer)
    return working.with_folded(Folded(indexes, summary.text, size, summary.author))


def _room_for_summary(working: Working, folded: int) -> int:
    """Half of what is folded at most, the task's limit, and what the rest leaves of the target."""
    task, earlier = working.task, working.folded
    most = min(task.summary_tokens, folded // 2)
    if task.target is not None:
        stays = working.tokens - folded - (earlier.tokens if earlier is not None else 0)
        most = min(most, task.target - stays - fence_tokens(task.tokenizer))
    return max(TIGHTEST_SUMMARY, most)


def _to_fold(step: Pass, working: Working) -> frozenset[int]:
    """The messages that a batch folds: whole tool groups only, never what must stay."""
    config = step.batch_config
    if config is None or config.operation == "keep":
        return frozenset()
    task = working.task
    chosen = _without_ends(selected(step.selection, working), config.summarization_config, working)
    pinned = last_user_message(task.messages)
    allowed = {i for i in task.split.folded if i not in (pinned, task.split.pinned)}
    candidates = allowed.intersection(chosen)
    shown = set(working.shown)
    found: set[int] = set()
    for first, end in pairwise(cut_points(task.messages)):
        unit = {index for index in range(first, end) if index in shown}
        stays = unit - candidates
        if stays <= {pinned} and not any(answers_a_call(task.messages[i]) for i in stays):
            found |= unit & candidates
    return frozenset(found) if is_worth_folding(task, found) else frozenset()


def _without_ends(
    chosen: Sequence[int], how: SummarizationConfig, working: Working
) -> Sequence[int]:
    """Without the first and the last that stay; what follows a summary is not first any more."""
    summary_at = _summary_at(working)
    first = [index for index in chosen if summary_at is None or index < summary_at]
    spared = set(first[: how.keep_first])
    kept = [index for index in chosen if index not in spared]
    return kept[: max(0, len(kept) - how.keep_last)]


def _summary_at(working: Working) -> int | None:
    if working.folded is not None:
        return min(working.folded.indexes)
    return working.task.previous_at if working.task.previous is not None else None


def _material(working: Working, index: int) -> Message:
    """A message for the summarizer; what an earlier compression cut is read as it was said."""
    task = working.task
    return working.material(index) if index in working.edits else task.as_said(index)


def _recent(working: Working, folded: Iterable[int]) -> tuple[Message, ...]:
    last = max(folded)
    return tuple(working.material(index) for index in working.shown if index > last)


async def _individual(step: Pass, working: Working, crew: Crew) -> Working:
    """Every message on its own, each type of content as its operation says."""
    config = step.individual_config
    if config is None:
        return working
    tokenizer = get(working.task.tokenizer)
    chosen = {
        index: (working.material(index), operations_for(index, config))
        for index in sorted(touched(step, working))
    }
    wanted = dict.fromkeys(
        text
        for message, operations in chosen.values()
        for text in texts_to_summarize(message, operations, tokenizer)
    )
    editor = Editor(tokenizer, await _summaries(step, list(wanted), working.task, crew))
    edited = {
        index: new
        for index, (message, operations) in chosen.items()
        if (new := editor.edit(message, operations)) is not message
    }
    return working.with_edited(edited)


async def _summaries(
    step: Pass, wanted: Sequence[Wanted], task: Task, crew: Crew
) -> Mapping[Wanted, str]:
    """Summaries of all texts, written side by side; a text that none was made of is left out."""
    done = await asyncio.gather(
        *(_summary(text, task, crew) for text in wanted), return_exceptions=True
    )
    failures = [each for each in done if isinstance(each, BaseException)]
    for failure in failures:
        if not isinstance(failure, CompressionError):
            raise failure
    if failures and len(failures) == len(done):
        raise failures[0]
    if failures:
        crew.warnings.append(
            f"{step.id}: {len(failures)} of {len(done)} summaries failed, their texts stay as they "
            f"are: {failures[0]}"
        )
    return {text: each for text, each in zip(wanted, done, strict=True) if isinstance(each, str)}


async def _summary(wanted: Wanted, task: Task, crew: Crew) -> str:
    request = SummaryRequest(
        messages=(Message(wanted.role, (Text(wanted.text),)),),
        max_tokens=wanted.how.max_tokens,
        tokenizer=task.tokenizer,
        prompt=wanted.how.custom_prompt,
    )
    return marked((await crew.write(wanted.how.api_profile, request)).text)
