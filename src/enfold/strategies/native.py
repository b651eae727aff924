"""The native strategy: what is old becomes one summary.

The summarizer is given the previous summary, the messages since its cutoff, and, marked as context
only, the messages that stay. A summary over its limit is asked for again, tighter each time. More
than the summarizer can read at once is folded in sequence: the summary of one piece is the
previous summary of the next, and every message is in one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from enfold.condensation import Condensation, Entry, Folded, Kept, Step, Task
from enfold.errors import SummaryError
from enfold.summaries import Style, Summarizer, Summary, SummaryRequest, fence
from enfold.summaries.sequence import pieces
from enfold.tokens import STRUCTURE_TOKENS, get

ATTEMPTS = 3
"""How often a summary that is too long is asked for."""


@dataclass(frozen=True, slots=True)
class Native:
    """Keep the head, one summary, and the tail."""

    summarizer: Summarizer
    style: Style = "default"
    prompt: str | None = None

    id = "native"

    async def condense(self, task: Task) -> Condensation:
        """The task with its folded part summarized."""
        split = task.split
        indexes = tuple(index for index in split.folded if index != split.pinned)
        request = SummaryRequest(
            messages=tuple(task.messages[index] for index in indexes),
            previous=task.previous,
            recent=task.messages[split.cut :] if task.show_recent else (),
            max_tokens=task.summary_tokens,
            tokenizer=task.tokenizer,
            style=self.style,
            prompt=self.prompt,
        )
        summary = await self._fold(request)
        tokens = STRUCTURE_TOKENS + get(task.tokenizer).count(fence(summary.text))
        folded = Folded(indexes, summary.text, tokens, summary.author)
        entries: tuple[Entry, ...] = (
            *map(Kept, range(split.head)),
            folded,
            *(() if split.pinned is None else (Kept(split.pinned),)),
            *map(Kept, range(split.cut, len(task.messages))),
        )
        answer = Condensation(self.id, entries)
        step = Step("summarize", task.tokens, answer.tokens(task))
        return replace(answer, steps=(step,))

    async def _fold(self, request: SummaryRequest) -> Summary:
        summary: Summary | None = None
        for piece in pieces(request, self.summarizer.max_input):
            previous = request.previous if summary is None else summary.text
            summary = await self._summarize(replace(request, messages=piece, previous=previous))
        if summary is None:
            raise SummaryError("there is nothing to summarize")
        return summary

    async def _summarize(self, request: SummaryRequest) -> Summary:
        for tightness in range(ATTEMPTS):
            summary = await self.summarizer.summarize(replace(request, tightness=tightness))
            if not summary.text.strip():
                raise SummaryError(f"the summarizer {summary.author!r} gave an empty summary")
            if summary.tokens <= request.max_tokens:
                return summary
        raise SummaryError(
            f"the summarizer {summary.author!r} gave {summary.tokens:,} tokens where "
            f"{request.max_tokens:,} were asked for, {ATTEMPTS} times"
        )
