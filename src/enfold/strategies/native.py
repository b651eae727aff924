"""The native strategy: old messages become one summary.

The summarizer is given the previous summary, the messages since its cutoff, and, marked as context
only, the messages that stay. A summary over its limit is asked for again, tighter each time. More
than the summarizer can read at once is folded in sequence: the summary of one piece is the
previous summary of the next, and every message is in one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from enfold.amounts import add
from enfold.condensation import (
    Condensation,
    Plan,
    Step,
    SummarizedMessages,
    unchanged,
    with_middle_summarized,
)
from enfold.errors import ConfigError, SummaryError
from enfold.fields import CamelModel
from enfold.messages import Message, Text
from enfold.retention import Retention
from enfold.strategies.contract import Capabilities, Estimate, Prices, StrategyKind, Summarizers
from enfold.strategies.simulation import simulate
from enfold.summaries import HEADING, Style, Summarizer, Summary, SummaryRequest, summary_tokens
from enfold.summaries.prompts import validate
from enfold.summaries.request import pieces

ATTEMPTS = 3
"""Maximum number of requests for a summary that is too long."""


async def summarize_in_pieces(summarizer: Summarizer, request: SummaryRequest) -> Summary:
    """The summary of the request, or `SummaryError`. Its cost and notes are of all attempts.

    What is more than the summarizer can read is folded in sequence: the summary of one piece is
    the previous summary of the next.
    """
    written: list[Summary] = []
    summary: Summary | None = None
    for piece in pieces(request, summarizer.max_input):
        previous = request.previous if summary is None else summary.text
        piece_request = replace(request, messages=piece, previous=previous)
        summary = await _summarize(summarizer, piece_request, written)
    if summary is None:
        raise SummaryError("there is nothing to summarize")
    notes = dict.fromkeys(note for each in written for note in each.notes)
    return replace(summary, cost=add([each.cost for each in written]), notes=tuple(notes))


async def _summarize(
    summarizer: Summarizer, request: SummaryRequest, written: list[Summary]
) -> Summary:
    for tightness in range(ATTEMPTS):
        summary = await summarizer.summarize(replace(request, tightness=tightness))
        written.append(summary)
        if not summary.text.strip():
            raise SummaryError(f"the summarizer {summary.author!r} gave an empty summary")
        if summary.tokens <= request.max_tokens:
            return summary
    raise SummaryError(
        f"the summarizer {summary.author!r} gave {summary.tokens:,} tokens where "
        f"{request.max_tokens:,} were asked for, {ATTEMPTS} times"
    )


def is_instruction(message: Message) -> bool:
    """True for a system message that is no summary."""
    return message.role == "system" and not _begins_as_summary(message)


def is_summary(message: Message) -> bool:
    """True for a message that is a summary of ours, and nothing else."""
    return len(message.parts) == 1 and _begins_as_summary(message)


def _begins_as_summary(message: Message) -> bool:
    first = next((part.text for part in message.parts if isinstance(part, Text)), "")
    return first.startswith(HEADING)


def keeping_instructions(retention: Retention, messages: Sequence[Message]) -> Retention:
    """The policy, with the instructions that the messages begin with among what stays."""
    leading = sum(1 for _ in takewhile(is_instruction, messages))
    return replace(retention, keep_first=max(retention.keep_first, leading))


def is_worth_summarizing(plan: Plan, indexes: Collection[int]) -> bool:
    """Return True if these messages add something to a summary, or the target is not reached.

    A summary of a summary alone says less and saves little.
    """
    is_over = plan.target is not None and plan.tokens > plan.target
    return is_over or not all(is_summary(plan.messages[index]) for index in indexes)


KEEP_FIRST = 1
KEEP_LAST = 3


def _check_prompt(text: str) -> str:
    try:
        validate(text)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    return text


PromptText: TypeAlias = Annotated[str, AfterValidator(_check_prompt)]
"""A prompt that has every placeholder it needs."""


class NativeConfig(CamelModel):
    """The config of the native strategy.

    The last three fields apply to conversations that are condensed without a store.
    """

    style: Style = Field(default="default", description="Style of summaries")
    prompt: PromptText | None = Field(
        default=None, description="Prompt in place of the built-in one"
    )
    keep_first: int = Field(
        default=KEEP_FIRST, description="First messages kept verbatim (without a store)", ge=0
    )
    keep_last: int = Field(
        default=KEEP_LAST, description="Last messages kept verbatim (without a store)", ge=0
    )
    fresh_start: bool = Field(
        default=False,
        description="Keep only the summary and the last user turn (without a store)",
    )


@dataclass(frozen=True, slots=True)
class Native:
    """Keep the head, one summary, and the tail."""

    config: NativeConfig
    means: Summarizers

    id = "native"

    @property
    def retention(self) -> Retention:
        """The first and the last messages, or nothing but the user's last."""
        if self.config.fresh_start:
            return Retention("messages", 0)
        return Retention("messages", self.config.keep_last, self.config.keep_first)

    def touches(self, plan: Plan) -> tuple[int, ...]:
        """Return the messages between head and tail; a lone summary only above the target."""
        indexes = plan.split.summarized
        return indexes if is_worth_summarizing(plan, indexes) else ()

    async def condense(self, plan: Plan) -> Condensation:
        """The plan with its folded part summarized."""
        indexes = self.touches(plan)
        if not indexes:
            return unchanged(plan, self.id, "there is nothing to summarize")
        request = SummaryRequest(
            messages=tuple(map(plan.original, indexes)),
            previous=plan.previous,
            recent=plan.messages[plan.split.cut :] if plan.show_recent else (),
            max_tokens=plan.summary_tokens,
            tokenizer=plan.tokenizer,
            style=self.config.style,
            prompt=self.config.prompt,
        )
        summary = await summarize_in_pieces(self.means.summarizer, request)
        tokens = summary_tokens(summary.text, plan.tokenizer)
        folded = SummarizedMessages(indexes, summary.text, tokens, summary.author)
        answer = Condensation(
            self.id,
            with_middle_summarized(plan, folded),
            operations=("summarize_completed",),
            cost=summary.cost,
            warnings=summary.notes,
        )
        step = Step("summarize", plan.tokens, answer.tokens(plan))
        return replace(answer, steps=(step,))

    async def estimate(self, plan: Plan, prices: Prices | None = None) -> Estimate:
        """With one call, or as many as it takes to read everything."""
        return await simulate(self, plan, prices)


KIND = StrategyKind(
    id="native",
    name="Native",
    description="Replaces old messages by one summary; the first and the newest messages stay.",
    capabilities=Capabilities(batch=True, summaries=True, speed="slow"),
    config=NativeConfig,
    make=Native,
)
