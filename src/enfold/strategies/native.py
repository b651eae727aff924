"""The native strategy: old messages become one summary.

The summarizer is given the previous summary, the messages since its cutoff, and, marked as context
only, the messages that stay. More than the summarizer can read at once is summarized in sequence:
the summary of one piece is the previous summary of the next, and every message is in one of them.

A summary that falls short is mended, not refused: one that is too long loses its last sentences,
one that leaves out exact items is revised once and gets a list of those that are still missing.
Where a model answers with something else, the built-in summarizer writes the summary.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from enfold.amounts import number, record_cost, track_spending
from enfold.condensation import (
    Condensation,
    KeptMessage,
    Plan,
    Step,
    SummarizedMessages,
    review_for,
    unchanged,
    with_middle_summarized,
)
from enfold.errors import ConfigError, NoSummaryError, SummaryError
from enfold.fields import CamelModel
from enfold.messages import Message
from enfold.receipt import ItemReview
from enfold.retention import Retention
from enfold.standing_instructions import has_summary
from enfold.strategies.contract import Capabilities, Estimate, Prices, StrategyKind, Summarizers
from enfold.strategies.simulation import simulate
from enfold.summaries import (
    Style,
    Summarizer,
    Summary,
    SummaryRequest,
    fence_tokens,
    summary_tokens,
)
from enfold.summaries.checks import refuse_no_summary, shorten, with_mentioned
from enfold.summaries.local import LOCAL, LocalSummarizer
from enfold.summaries.prompts import validate
from enfold.summaries.request import (
    SummarizerGroup,
    add_words,
    begin_call,
    divide,
    style_for,
    summarize_parts,
    take_words,
    words_tokens,
)
from enfold.text.harness import person_text
from enfold.text.inventions import Invention
from enfold.tokens import compute_async, get

_LITTLE_OVER = 1.5
"""A summary of up to this many times its limit is accepted if the view meets its goal."""
_FAR_OVER = 2.0
"""A summary of more than this many times its limit is asked for once more, shorter."""
_SMALLEST_SUMMARY = 16
"""Tokens. A summary is not shortened to fewer to make space for a list of items."""


@dataclass(frozen=True, slots=True)
class ReviewedSummary:
    """A summary and what a review found in it."""

    summary: Summary
    missing: tuple[str, ...] = ()
    """Exact items that it must mention, and does not."""
    invented: tuple[Invention, ...] = ()
    """Items and quotations that its input does not have."""

    @property
    def faults(self) -> int:
        """The number of items that are missing or invented."""
        return len(self.missing) + len(self.invented)


async def write_summary(
    summarizer: Summarizer,
    request: SummaryRequest,
    review: ItemReview | None = None,
    *,
    most: int | None = None,
) -> ReviewedSummary:
    """Return the summary of the request, mended where it falls short; `SummaryError` without one.

    `review` finds exact items that a summary must mention, and items that it has invented. The
    model is asked about both once, then the next model of a chain for those that are missing; what
    is still missing is added as a list, and what is invented is reported.
    `most` is the number of tokens with which the view meets its goal. None is no goal.
    """
    best = await _revised(summarizer, request, review, most)
    notes, author = list(best.summary.notes), best.summary.author
    group = summarizer
    while best.missing and isinstance(group, SummarizerGroup):
        successor = group.after(author)
        if successor is None:
            break
        group = successor
        try:
            other = await _revised(group, request, review, most)
        except SummaryError as error:
            notes.append(str(error))
            break
        author = other.summary.author
        if len(other.missing) < len(best.missing):
            notes.append(f"{author} wrote instead of {best.summary.author}, which left out items")
            best = other
    summary = best.summary
    notes += [note for note in summary.notes if note not in notes]
    if best.missing:
        summary = _with_items(summary, request, best.missing, most)
        notes += summary.notes[-1:]
    if best.invented:
        found = number(len(best.invented), "item")
        notes.append(f"the summary by {summary.author!r} has {found} that its input does not have")
    return replace(best, summary=replace(summary, notes=tuple(dict.fromkeys(notes))))


async def _revised(
    summarizer: Summarizer, request: SummaryRequest, review: ItemReview | None, most: int | None
) -> ReviewedSummary:
    """Return a summary with what is still wrong with it after one revision."""
    summary = await _summarize_parts(summarizer, divide(request, summarizer.max_input), most)
    if review is None:
        return ReviewedSummary(summary)
    if summary.author == LOCAL:
        # It quotes, so it invents nothing, and it would write the same again.
        missing = await compute_async(review.missing, summary.text)
        return ReviewedSummary(summary, missing)
    first = await compute_async(_reviewed, summary, review)
    if not first.faults or summary.parts > 1:
        return first  # a revision would take as many calls again
    again = replace(
        request,
        draft=summary.text,
        missing=first.missing,
        invented=tuple(item for _, item in first.invented),
    )
    if len(divide(again, summarizer.max_input)) > 1:
        return first  # a revision does not fit
    try:
        revised = await _summarize_parts(summarizer, [again], most)
    except SummaryError as error:
        return replace(first, summary=replace(summary, notes=(*summary.notes, str(error))))
    second = await compute_async(_reviewed, revised, review)
    return second if second.faults <= first.faults else first


def _reviewed(summary: Summary, review: ItemReview) -> ReviewedSummary:
    return ReviewedSummary(summary, review.missing(summary.text), review.invented(summary.text))


def _with_items(
    summary: Summary, request: SummaryRequest, missing: tuple[str, ...], most: int | None
) -> Summary:
    """Return the summary with a list of the missing items; sentences make way for it."""
    tokenizer = get(request.tokenizer)
    limit = max(summary.tokens, _allowed(request.max_tokens, most))
    text = with_mentioned(summary.text, missing)
    surplus = tokenizer.count(text) - limit
    if surplus > 0:
        shorter = shorten(summary.text, max(_SMALLEST_SUMMARY, summary.tokens - surplus), tokenizer)
        text = with_mentioned(shorter, missing) if shorter else summary.text
    if tokenizer.count(text) > limit:
        return replace(summary, notes=(*summary.notes, _left_out(summary, missing)))
    note = () if summary.author == LOCAL else (_added(summary, missing),)
    return replace(summary, text=text, tokens=tokenizer.count(text), notes=(*summary.notes, *note))


def _left_out(summary: Summary, missing: tuple[str, ...]) -> str:
    return f"the summary by {summary.author!r} leaves out {number(len(missing), 'exact item')}"


def _added(summary: Summary, missing: tuple[str, ...]) -> str:
    return f"{_left_out(summary, missing)}; they were added to it as a list"


async def _summarize_parts(
    summarizer: Summarizer, parts: Sequence[SummaryRequest], most: int | None
) -> Summary:
    """Return the summary of all parts, or raise `SummaryError`. Its cost is of all calls."""
    with track_spending() as spent:
        summary = await summarize_parts(
            summarizer.name, parts, lambda part: _summarize(summarizer, part, most)
        )
    return replace(summary, cost=spent.total())


async def _summarize(summarizer: Summarizer, request: SummaryRequest, most: int | None) -> Summary:
    """Return a summary by the summarizer, or by the built-in one if its answer is no summary."""
    try:
        return await _fitting(summarizer, request, most)
    except NoSummaryError as error:
        if request.draft is not None:
            raise  # the draft is a summary by the model
        summary = await LocalSummarizer().summarize(request)
        note = f"{error}; the built-in summarizer wrote it"
        return replace(summary, notes=(*summary.notes, note))


async def _fitting(summarizer: Summarizer, request: SummaryRequest, most: int | None) -> Summary:
    """Return a summary of about the requested length, after two calls at most."""
    summary = await _ask(summarizer, request)
    if summary.tokens > request.max_tokens * _FAR_OVER:
        try:
            again = await _ask(summarizer, replace(request, tightness=1))
        except SummaryError as error:
            summary = replace(summary, notes=(*summary.notes, str(error)))
        else:
            summary = min(summary, again, key=lambda each: each.tokens)
    allowed = _allowed(request.max_tokens, most)
    if summary.tokens <= allowed:
        return summary
    tokenizer = get(request.tokenizer)
    text = shorten(summary.text, allowed, tokenizer)
    if not text:
        raise NoSummaryError(
            f"the answer by {summary.author} had {summary.tokens:,} tokens without the end of a "
            f"sentence in the first {allowed:,}"
        )
    tokens = tokenizer.count(text)
    note = (
        f"the summary by {summary.author!r} had {summary.tokens:,} tokens where "
        f"{request.max_tokens:,} were requested; its last sentences were left out"
    )
    return replace(summary, text=text, tokens=tokens, notes=(*summary.notes, note))


def _allowed(limit: int, most: int | None) -> int:
    """Return the tokens that a summary may have: a little over its limit if the goal is met."""
    little_over = int(limit * _LITTLE_OVER)
    return little_over if most is None else max(limit, min(little_over, most))


async def _ask(summarizer: Summarizer, request: SummaryRequest) -> Summary:
    """Return the summarizer's answer, its cost recorded even if it cannot be used."""
    begin_call()
    try:
        summary = await summarizer.summarize(request)
    except SummaryError as error:
        record_cost(error.cost)
        raise
    record_cost(summary.cost)
    if not summary.text.strip():
        raise SummaryError(f"the summarizer {summary.author!r} gave an empty summary")
    if not summary.is_checked:
        await compute_async(refuse_no_summary, summary.text, request, repr(summary.author))
    return summary


def is_summary(message: Message) -> bool:
    """Return True for a message that is a summary of ours, and nothing else."""
    return len(message.parts) == 1 and has_summary(message)


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

    style: Style = Field(
        default="default",
        description="Style of summaries; unless set, `agent` for messages with tool calls",
    )
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
        return Retention(
            "messages",
            self.config.keep_last,
            self.config.keep_first,
            is_default="keep_last" not in self.config.model_fields_set,
        )

    def touches(self, plan: Plan) -> tuple[int, ...]:
        """Return the messages between head and tail; a lone summary only above the target.

        Where nothing can be summarized, these are the messages that must be shown in part.
        """
        indexes = plan.summarized
        if indexes and is_worth_summarizing(plan, indexes):
            return indexes
        return tuple(plan.excerpts) if plan.shortened else ()

    async def condense(self, plan: Plan) -> Condensation:
        """Return the plan with its middle summarized."""
        indexes = self.touches(plan)
        if not indexes:
            return unchanged(plan, self.id, "there is nothing to summarize")
        if indexes is not plan.summarized and not set(indexes) <= set(plan.summarized):
            entries = tuple(plan.excerpts.get(i, KeptMessage(i)) for i in range(len(plan.messages)))
            answer = Condensation(self.id, entries, operations=("shorten_completed",))
            step = Step("shorten", plan.tokens, answer.tokens(plan))
            return replace(answer, steps=(step,))
        previous, words = (None, ()) if plan.previous is None else take_words(plan.previous)
        replaced = plan.to_summarize
        request = SummaryRequest(
            messages=replaced,
            previous=previous,
            recent=plan.stays,
            follows_opening=any(map(person_text, plan.messages[: indexes[0]])),
            max_tokens=plan.summary_tokens,
            tokenizer=plan.tokenizer,
            style=self._style(replaced, previous),
            prompt=self.config.prompt,
        )
        # The view without the text of its summary: what stays, and what the summary must mention.
        quotes = (*words, *plan.quotes.values())
        quoted = words_tokens(quotes, plan.tokenizer)
        frame = self._answer(plan, SummarizedMessages(indexes, "", quoted, ""))
        review = None
        if self.means.reviewed:
            review = await compute_async(review_for, plan, frame)
        # Without a target the view must become smaller at least.
        most = (plan.tokens - 1 if plan.target is None else plan.target) - frame.tokens(plan)
        most -= fence_tokens(plan.tokenizer, plan.summary_tokens)
        if plan.target is None and _SMALLEST_SUMMARY <= most < request.max_tokens:
            request = replace(request, max_tokens=most)
        with track_spending() as spent:
            written = await write_summary(self.means.summarizer, request, review, most=most)
        summary, text = written.summary, add_words(written.summary.text, quotes)
        tokens = summary_tokens(text, plan.tokenizer)
        answer = self._answer(
            plan, SummarizedMessages(indexes, text, tokens, summary.author), summary.notes
        )
        if review is not None:
            made = await compute_async(review.checked_receipt, text)
            made = replace(made, invented=written.invented)
            warnings = (*answer.warnings, *made.warnings)
            answer = replace(answer, receipt=made, invented=made.invented, warnings=warnings)
        step = Step("summarize", plan.tokens, answer.tokens(plan))
        return replace(answer, steps=(step,), cost=spent.total())

    def _style(self, messages: tuple[Message, ...], previous: str | None) -> Style:
        """Return the style that is set, else the one that suits the messages."""
        is_set = "style" in self.config.model_fields_set
        return self.config.style if is_set else style_for(messages, previous)

    def _answer(
        self, plan: Plan, summary: SummarizedMessages, notes: tuple[str, ...] = ()
    ) -> Condensation:
        entries = with_middle_summarized(plan, summary)
        return Condensation(self.id, entries, operations=("summarize_completed",), warnings=notes)

    async def estimate(self, plan: Plan, prices: Prices | None = None) -> Estimate:
        """With one call, or as many as it takes to read everything."""
        return await simulate(self, plan, prices)


KIND = StrategyKind(
    id="native",
    name="Native",
    description="Replaces old messages by one summary. The first and the newest messages stay.",
    capabilities=Capabilities(batch=True, summaries=True, speed="slow"),
    config=NativeConfig,
    make=Native,
)
