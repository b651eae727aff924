"""The native strategy: what is old becomes one summary.

The summarizer is given the previous summary, the messages since its cutoff, and, marked as context
only, the messages that stay. A summary over its limit is asked for again, tighter each time. More
than the summarizer can read at once is folded in sequence: the summary of one piece is the
previous summary of the next, and every message is in one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated

from enfold.condensation import Condensation, Folded, Step, Task, unchanged, with_middle_folded
from enfold.errors import ConfigError
from enfold.retention import Retention
from enfold.strategies.configs import Checked, Fault, Option
from enfold.strategies.contract import Capabilities, Estimate, Kind, Means, Prices
from enfold.strategies.instructions import is_worth_folding
from enfold.strategies.rehearsal import rehearse
from enfold.strategies.writing import fold
from enfold.summaries import Style, SummaryRequest, summary_tokens
from enfold.summaries.prompts import validate

KEEP_FIRST = 1
KEEP_LAST = 3


@dataclass(frozen=True, slots=True)
class NativeConfig(Checked):
    """What can be set of the native strategy."""

    style: Annotated[Style, Option("Style of summaries")] = "default"
    prompt: Annotated[str | None, Option("A prompt of your own for summaries")] = None
    keep_first: Annotated[
        int,
        Option(
            "First messages that stay verbatim, where a conversation is condensed without a store",
            least=0,
        ),
    ] = KEEP_FIRST
    keep_last: Annotated[int, Option("Likewise, last messages", least=0)] = KEEP_LAST
    fresh_start: Annotated[
        bool, Option("Likewise, keep only the summary and what belongs to the user's last message")
    ] = False

    def contradictions(self) -> Iterator[Fault]:
        """A prompt that cannot be used."""
        if self.prompt is not None:
            try:
                validate(self.prompt)
            except ConfigError as error:
                yield Fault("prompt", str(error))


@dataclass(frozen=True, slots=True)
class Native:
    """Keep the head, one summary, and the tail."""

    config: NativeConfig
    means: Means

    id = "native"

    @property
    def retention(self) -> Retention:
        """The first and the last messages, or nothing but the user's last."""
        if self.config.fresh_start:
            return Retention("messages", 0)
        return Retention("messages", self.config.keep_last, self.config.keep_first)

    def touches(self, task: Task) -> tuple[int, ...]:
        """What lies between head and tail; a summary alone only if the target is still to reach."""
        indexes = tuple(index for index in task.split.folded if index != task.split.pinned)
        return indexes if is_worth_folding(task, indexes) else ()

    async def condense(self, task: Task) -> Condensation:
        """The task with its folded part summarized."""
        indexes = self.touches(task)
        if not indexes:
            return unchanged(task, self.id, "there is nothing to fold")
        request = SummaryRequest(
            messages=tuple(map(task.as_said, indexes)),
            previous=task.previous,
            recent=task.messages[task.split.cut :] if task.show_recent else (),
            max_tokens=task.summary_tokens,
            tokenizer=task.tokenizer,
            style=self.config.style,
            prompt=self.config.prompt,
        )
        summary = await fold(self.means.summarizer, request)
        tokens = summary_tokens(summary.text, task.tokenizer)
        folded = Folded(indexes, summary.text, tokens, summary.author)
        answer = Condensation(
            self.id,
            with_middle_folded(task, folded),
            operations=("summarize_completed",),
            cost=summary.cost,
            warnings=summary.notes,
        )
        step = Step("summarize", task.tokens, answer.tokens(task))
        return replace(answer, steps=(step,))

    async def estimate(self, task: Task, prices: Prices | None = None) -> Estimate:
        """With one call, or as many as it takes to read everything."""
        return await rehearse(self, task, prices)


KIND = Kind(
    id="native",
    name="Native",
    description="Folds what is old into one summary; the first and the newest messages stay.",
    capabilities=Capabilities(batch=True, summaries=True, speed="slow"),
    config=NativeConfig,
    make=Native,
)
