"""The pipeline: plan, condense, validate. Steps over four values that know no store and no wire.

    Request       a view with its token counts, the goal, and what must stay
    Plan          what a strategy is given: head, middle and tail, the summary's limit
    Condensation  the strategy's answer
    Outcome       the accepted answer with its figures, receipt and report

`budget.decide` says whether a view must be compressed; everything after that is here. Stored
sessions, `enfold.condense`, the proxy and the adapters run these steps and differ only in where
the messages come from and where the result goes.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import accumulate
from typing import Any, ClassVar, Literal, TypeAlias

from enfold.amounts import number, track_spending
from enfold.condensation import (
    TIGHTEST_SUMMARY,
    Condensation,
    EditedMessage,
    KeptMessage,
    Plan,
    Step,
    accept,
    no_gain,
)
from enfold.errors import CompressionError, SummaryError, UncompressibleError
from enfold.history import cut_points, is_from_user, open_loop_start
from enfold.llm.costs import Prices, savings
from enfold.messages import Message
from enfold.receipt import Receipt, RestorableBy
from enfold.refill import refill, shorten_staying
from enfold.report import Report
from enfold.retention import Retention, Split, split, zones
from enfold.standing_instructions import (
    STANDING_SHARE,
    WORDS_SHARE,
    StandingLimits,
    StandingMessages,
    after_instructions,
    find_standing,
    instruction_tokens,
)
from enfold.strategies.contract import Strategy
from enfold.strategies.fallback import OPERATION, summarized_locally, truncated
from enfold.summaries import SHORT_TOKENS, fence_tokens
from enfold.summaries.request import KeptParts, OnPart, watch_calls, words_tokens
from enfold.tokens import compute_async
from enfold.view import ShownMessage, View

NATIVE = "native"
"""The strategy that only summarizes the middle, so that the plan predicts its result."""

STOP_AT_TARGET = ("lossless", "truncation")
"""Strategies that stop as soon as the target is met; nothing returns to fill it."""
SUMMARY_SHARE = 10
"""One token of summary for this many tokens of the messages it replaces."""
SMALLEST_SUMMARY = 256
"""The lowest limit of a summary that is not tightened, in tokens."""
SHORTEST_SUMMARY = 52
"""The lowest limit of a summary where a target is given, in tokens."""

Fallback: TypeAlias = Literal["local", "truncate"]
FALLBACKS: Mapping[str, Fallback] = {"local": "local", "truncate": "truncate"}
"""The values of the setting `on_failure` that let a failed compression end in a view."""

WORDS_OF_GOAL = (0.625, 0.75)
"""Shares of the goal that people's words may take: usually, and if they have priority."""
MEETING_RULES = 16
"""Divisor: the rules of a meeting take 1/16 of a target, and its summary takes the rest."""

TURNS = 10
"""Number of turns, of the recent size, for which a compression must make space."""
GAIN_SHARE = 0.2
"""Share of the limit that is enough to free, if it is less than these turns need."""

SHORTENED_SHARE = 0.9
"""Share of the allowed tokens for messages that are shown in part because they do not fit."""

_TIGHTER = (
    (1.0, 1.0, 1.0),
    (1.0, 0.5, 1.0),
    (0.5, 0.5, 1.0),
    (0.25, 0.25, 1.0),
    (0.0, 0.25, 1.0),
    (0.0, 0.05, 0.85),
    (0.0, 0.05, 0.5),
    (0.0, 0.05, 0.0),
)
"""Shares of the retention, of the summary's limit and of the room for people's words that are
tried, from loose to tight."""

OutcomeName: TypeAlias = Literal[
    "compressed", "kept", "no_gain", "nothing_new", "nothing_to_compress"
]

_log = logging.getLogger("enfold.engine")


@dataclass(frozen=True, slots=True)
class Request:
    """A view to condense, with its goal and its limits."""

    view: View
    """The messages with their counts, and the summary that the view shows now."""
    strategy: Strategy
    retention: Retention
    """The retention: messages that stay verbatim."""
    goal: int
    """Exact tokens at or below which the view should end."""
    target: int | None = None
    """The goal, if a strategy may stop there. None: it makes the view as small as possible."""
    split: Split | None = None
    """A division to use as it is. None: the loosest one that reaches the goal."""
    fills: bool = False
    """True if the view should end close to the goal: more stays verbatim where there is room."""
    limit: int | None = None
    """The maximum tokens of the history, of which shares are taken. None: the view's tokens."""
    words_share: float = WORDS_SHARE
    """Share of the limit up to which everything that people typed stays verbatim."""
    pins: Mapping[int, bool] = field(default_factory=dict)
    """Indexes of messages that a person pinned (True) or released (False)."""
    summary_tokens: int | None = None
    """The summary's limit. None: a tenth of the messages that it replaces."""
    is_due: bool = False
    """True if nothing can be sent without it: then failures and misses are errors."""
    prompt_variant: str | None = None
    """The prompt that writes the summary while another one is on trial. None: no trial."""
    allowed: int | None = None
    """The most exact tokens that the view may have if the compression is due."""
    sent_view: View | None = None
    """The view as it is sent now, if edits in it point to other messages. None: `view`."""
    originals: Mapping[int, Message] = field(default_factory=dict, repr=False)
    """Messages as they were before an earlier compression edited them, by index."""
    static_tokens: int = 0
    """Tokens sent with every request besides the view: system prompt and tools."""
    share_across_branches: bool = False
    """True if the summary may serve other branches, so that it must not mention later messages."""
    hides_recent: bool = False
    """True if the summarizer must not read the messages after the cutoff: other branches have
    others there."""
    reply_start: int | None = None
    """The index of the last reply, which the summarizer must not read: another may replace it."""
    restorable_by: RestorableBy | None = "store"
    """The way to restore content that leaves the view. None: there is none."""
    author: str = ""
    """The name of the summarizer."""
    timeout: float | None = None
    """Seconds after which a call to a summarizer is given up. None: never."""
    on_part: OnPart | None = field(default=None, repr=False, compare=False)
    """Called when a summary that is written in parts begins its next part."""
    parts: KeptParts | None = field(default=None, repr=False, compare=False)
    """Keeps the parts of a summary, so that another attempt goes on after them."""
    fallback: Fallback | None = None
    """What takes the place of a due summary that failed: the built-in summarizer's, or none at all
    and old content is left out. None: the failure is an error."""
    must_pay: bool = False
    """True if an answer that frees too little is a `NoGainError`."""
    may_be_unchanged: bool = False
    """True if an answer that changes nothing is accepted. False: it is a `NoGainError`."""
    prices: Prices | None = None
    """Prices of the model that the view is for. None is unknown."""

    @property
    def tokens_before(self) -> int:
        """Tokens of the view as it is sent now."""
        return (self.sent_view or self.view).tokens

    @property
    def estimate(self) -> int:
        """Tokens of the view that have no exact count."""
        return (self.sent_view or self.view).estimate


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a compression. Nothing to do is an outcome, not an error."""

    JSON_FIELDS: ClassVar = (
        "outcome",
        "compressed",
        "tokens_before",
        "tokens_after",
        "reduction",
        "messages",
        "edited",
        "snapshot",
        "cutoff",
        "summary",
        "author",
        "strategy",
        "seconds",
        "cost",
        "saved",
        "operations",
        "steps",
        "warnings",
        "receipt=receipt_counts",
    )
    outcome: OutcomeName
    """`compressed`, `kept`, `no_gain`, `nothing_new` or `nothing_to_compress`."""
    tokens_before: int
    """Tokens of the view before."""
    tokens_after: int
    """Tokens of the view after."""
    messages: int = 0
    """Number of messages that the summary replaces."""
    edited: int = 0
    """Number of messages that are shown with other content."""
    snapshot: str | None = None
    """The id of the recorded snapshot. None if there is none."""
    cutoff: str | None = None
    """The last message that the snapshot covers."""
    summary: str | None = None
    """The summary's text. None if nothing was summarized."""
    author: str | None = None
    """The author of the summary."""
    strategy: str | None = None
    """The strategy whose answer was accepted. It may have replaced the one that was chosen."""
    seconds: float = 0.0
    """Duration in seconds."""
    receipt: Receipt | None = None
    """Exact items kept and lost. None if nothing left the view."""
    steps: tuple[Step, ...] = ()
    """Tokens before and after each step."""
    operations: tuple[str, ...] = ()
    """Names of what ran and what was skipped: `<id>_completed`, `skip_<id>`."""
    warnings: tuple[str, ...] = ()
    """Warnings."""
    cost: float | None = 0.0
    """Cost of the model calls in US dollars. None is unknown."""
    saved: float | None = None
    """Saving of every later request in US dollars. None is unknown."""

    @property
    def report(self) -> Report:
        """The figures as a report, for people and for programs."""
        return Report(
            strategy=self.strategy or "",
            tokens_before=self.tokens_before,
            tokens_after=self.tokens_after,
            seconds=self.seconds,
            steps=self.steps,
            operations=self.operations,
            warnings=self.warnings,
            cost=self.cost,
            saved=self.saved,
        )

    @property
    def receipt_counts(self) -> Mapping[str, Any] | None:
        """The receipt's figures, without the items."""
        return None if self.receipt is None else self.receipt.counts_as_json()

    @property
    def compressed(self) -> bool:
        """True if a snapshot was recorded."""
        return self.outcome == "compressed"

    @property
    def is_truncated(self) -> bool:
        """True if the summary failed and old content was removed without one."""
        return OPERATION in self.operations

    @property
    def reduction(self) -> float:
        """Share of the tokens that left the view, 0 to 1."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0


def with_reachable_goal(request: Request, threshold: int) -> Request:
    """Return the request with a goal that it can reach, if instructions take most of the usual one.

    The usual goal is a share of the limit. If system messages, context blocks and pins take most of
    it, no compression reaches it. Half of what they leave below the threshold is reachable.
    """
    view = request.view
    counts = [shown.tokens for shown in view.shown]
    fixed = instruction_tokens(view.messages, counts, view.tokenizer, request.pins)
    if fixed <= request.goal // 2:
        return request
    goal = max(request.goal, fixed + (threshold - fixed) // 2)
    return replace(request, goal=goal, target=None if request.target is None else goal)


def make_plan(request: Request) -> Plan:
    """Return the loosest plan whose view ends at or below the goal, or the tightest one.

    The limit of a summary is enforced, so the largest size of the view is known before any model
    is called.
    """
    view, counts = request.view, tuple(shown.tokens for shown in request.view.shown)
    retention = after_instructions(request.retention, view.messages)
    request = replace(request, retention=retention)
    base = Plan(
        messages=view.messages,
        counts=counts,
        split=request.split or Split(0, 0, 0),
        tokenizer=view.tokenizer,
        previous=view.summary,
        previous_tokens=view.summary_tokens,
        previous_at=view.summary_at,
        show_recent=not request.hides_recent,
        recent_end=request.reply_start,
        target=request.target,
        is_due=request.is_due,
        zones=zones(counts, request.retention),
        static_tokens=request.static_tokens,
        restorable_by=request.restorable_by,
        originals=request.originals,
    )
    # Most of the plans that are tried share their standing messages.
    standing = cache(partial(_standing, request))
    if request.split is not None:
        return _with_split(base, request, request.split, standing(1.0))
    tried: list[Plan] = []
    for kept_share, summary_share, words_share in _TIGHTER:
        plan = _tightened(base, request, standing(words_share), kept_share, summary_share)
        is_empty = plan.split.is_empty
        if is_empty and not tried and view.tokens <= request.goal:
            return plan
        if not is_empty and plan.expected_tokens <= request.goal:
            return _filled(plan, request, standing(1.0)) if request.fills else plan
        if request.fills and kept_share == 0 and words_share == 1:
            # People's words count more than the length of the last answer.
            shorter = shorten_staying(plan, request.goal, grades=1)
            if not is_empty and shorter.expected_tokens <= request.goal:
                return shorter
        tried.append(plan)
    if request.fills:
        return _for_small_target(base, request, standing)
    summarizing = (plan for plan in tried if not plan.split.is_empty)
    best = min(summarizing, key=lambda plan: plan.expected_tokens, default=tried[0])
    if not request.is_due or request.allowed is None:
        return best
    expected = best.tokens if best.split.is_empty else best.expected_tokens
    most = int(request.allowed * SHORTENED_SHARE)
    return shorten_staying(best, most) if expected > request.allowed else best


def _for_small_target(
    base: Plan, request: Request, standing: Callable[[float], StandingMessages]
) -> Plan:
    """Return a plan for a target that is too small for the messages that usually stay.

    A requested target counts more than the first message and the length of recent results. What
    the user typed last and instructions stay whole.
    """
    retention = after_instructions(Retention("tokens", 0), base.messages)
    request = replace(request, retention=retention)
    kept_share, summary_share, words_share = _TIGHTER[-1]
    plan = _tightened(base, request, standing(words_share), kept_share, summary_share)
    if plan.split.is_empty or plan.expected_tokens > request.goal:
        return shorten_staying(plan, request.goal, grades=2)
    return _filled(plan, request, standing(1.0))


def _tightened(
    base: Plan,
    request: Request,
    standing: StandingMessages,
    kept_share: float,
    summary_share: float,
) -> Plan:
    """Return the plan that keeps these shares of the retention and of the summary's limit."""
    view = request.view
    retention = replace(request.retention, amount=request.retention.amount * kept_share)
    # A summary needs its part of the goal too, and so do instructions.
    room = request.goal - request.goal // 8 - standing.instruction_tokens
    is_by_hand = not request.is_due and request.target is None
    if is_by_hand and open_loop_start(base.messages) < len(base.messages):
        room = 0  # the results of the running loop are the part that a person wants to compress
    divided = split(base.messages, base.counts, retention, room=room)
    if view.summary_tokens and divided.head > view.summary_at:
        divided = replace(divided, head=view.summary_at)
    if kept_share < 1:
        base = replace(base, zones=zones(base.counts, retention))
    plan = _with_split(base, request, divided, standing, summary_share)
    return replace(plan, is_tightened=kept_share * summary_share < 1)


def _standing(request: Request, share: float) -> StandingMessages:
    """Return the standing messages, with this share of the room for people's other words."""
    view = request.view
    limit = view.tokens if request.limit is None else request.limit
    keeps_words = request.strategy.retention.keeps_words
    most, rules = int(request.goal * WORDS_OF_GOAL[keeps_words]), request.goal // 4
    words = most if request.fills else min(most, int(limit * request.words_share))
    if request.fills and _is_meeting(view):
        # Of a meeting a summary tells more than a few of its sentences do.
        words, rules = 0, request.goal // MEETING_RULES
    return find_standing(
        view.messages,
        [shown.tokens for shown in view.shown],
        view.tokenizer,
        pins=request.pins,
        limits=StandingLimits(
            words=int(words * share),
            rules=rules,
            # Leaving out a context block is the last way before the compression fails.
            context=None if share else request.goal // 4,
            fill=request.fills or request.limit is not None,
        ),
    )


def _is_meeting(view: View) -> bool:
    """Return True if several people talk to each other and no assistant answers them."""
    speakers = {shown.message.name for shown in view.shown if is_from_user(shown.message)}
    return len(speakers) > 1 and all(each.message.role != "assistant" for each in view.shown)


def _with_split(
    base: Plan,
    request: Request,
    divided: Split,
    standing: StandingMessages,
    summary_share: float = 1.0,
) -> Plan:
    """Return the plan for a division, with the summary's limit and the largest expected size."""
    indexes = frozenset(each.index for each in standing.messages)
    divided = replace(divided, kept=divided.kept | indexes)
    middle = divided.middle
    words = {each.index for each in standing.messages if each.why in {"rule", "words"}}
    excerpts = {
        each.index: EditedMessage(each.index, each.excerpt, each.tokens)
        for each in standing.messages
        if each.excerpt is not None and each.index in middle
    }
    # What the last summary left is not summarized again until something new joins it.
    has_nothing_new = divided.is_empty or divided.cut <= request.view.settled
    plan = replace(
        base,
        split=replace(divided, cut=divided.head) if has_nothing_new else divided,
        excerpts={} if has_nothing_new else excerpts,
        quotes={index: text for index, text in standing.quotes.items() if index in middle},
        # Words of people follow the summary, which tells what became of them.
        summary_at=next((i for i in middle if i in words or i not in divided.kept), 0),
        standing_tokens=standing.instruction_tokens,
        rules_left_out=standing.left_out,
        tail_start=divided.cut,
    )
    return _with_limit(plan, request, divided, excerpts, summary_share)


def _with_limit(
    plan: Plan,
    request: Request,
    divided: Split,
    excerpts: Mapping[int, EditedMessage],
    summary_share: float,
) -> Plan:
    counts = plan.counts
    middle = sum(map(counts.__getitem__, divided.summarized))
    middle += sum(counts[index] - edit.tokens for index, edit in excerpts.items())
    kept = sum(counts) - middle + fence_tokens(plan.tokenizer)
    kept += words_tokens(plan.quotes.values(), plan.tokenizer)
    limit = int((request.summary_tokens or _summary_limit(request, middle, kept)) * summary_share)
    if request.fills and request.summary_tokens is None and summary_share == 1:
        # Far below the history a summary tells more than a few more messages do.
        limit = max(limit, min(request.goal * 9 // 10, middle // 6))
    # With a target one line is enough; elsewhere a summary must be able to say something.
    limit = max(SHORTEST_SUMMARY if request.fills else TIGHTEST_SUMMARY, limit)
    kept -= fence_tokens(plan.tokenizer) - fence_tokens(plan.tokenizer, limit)
    return replace(plan, summary_tokens=limit, expected_tokens=kept + limit)


def _filled(plan: Plan, request: Request, standing: StandingMessages) -> Plan:
    """Return the plan with the longest tail, then the longest summary, that the goal allows."""
    tails = [0, *accumulate(reversed(plan.counts))][::-1]
    points = [
        point
        for point in cut_points(plan.messages)
        if plan.split.head < point <= plan.split.cut and point > request.view.settled
    ]

    def plan_at(point: int) -> Plan:
        divided = replace(plan.split, cut=point, tail_tokens=tails[point], overshoot=0)
        return _with_split(plan, request, divided, standing)

    fitting = bisect_left(points, 1, key=lambda at: plan_at(at).expected_tokens <= request.goal)
    best = plan_at(points[fitting]) if fitting < len(points) else plan
    if best.split.is_empty or request.summary_tokens is not None:
        return best
    middle = sum(best.counts[index] for index in best.split.summarized)
    room = request.goal - best.expected_tokens + best.summary_tokens
    short_fence = fence_tokens(plan.tokenizer, best.summary_tokens)
    more = fence_tokens(plan.tokenizer, room) - short_fence
    if more:
        # A longer summary has a longer fence, which must fit too.
        room = max(SHORT_TOKENS, room - more)
    longest = min(room, max(best.summary_tokens, middle // 2))
    fence = fence_tokens(plan.tokenizer, longest) - short_fence
    longer = longest - best.summary_tokens + fence
    return replace(best, summary_tokens=longest, expected_tokens=best.expected_tokens + longer)


def _summary_limit(request: Request, middle: int, kept: int) -> int:
    """Return a tenth of the middle on top of the previous summary; at most a third of the goal.

    A first summary may take everything that the rest leaves of the goal: where that is more, the
    goal is far below the history and nothing else needs the space. A summary that continues
    another one may not, or it would fill the view in the end.
    """
    previous = request.view.summary_tokens
    wanted = previous + middle // SUMMARY_SHARE
    most = request.goal // 3
    if not previous:
        most = max(most, request.goal - kept)
    return min(max(SMALLEST_SUMMARY, wanted), most)


def refuse_impossible(request: Request, plan: Plan) -> None:
    """Raise `UncompressibleError` if a due compression cannot succeed, before a model is called.

    Only the size of the native strategy's result is known in advance.
    """
    if not request.is_due or request.allowed is None or request.strategy.id != NATIVE:
        return
    is_same = plan.split.is_empty and not plan.shortened
    expected = request.view.tokens if is_same else plan.expected_tokens
    if expected > request.allowed:
        tail = request.view.shown[plan.tail_start : plan.tail_start + 1]
        raise UncompressibleError(
            f"messages that must stay verbatim take {expected + request.estimate:,} tokens with "
            f"the shortest summary, and {request.allowed + request.estimate:,} are allowed; use a "
            "model with a larger window"
            + "".join(f", or branch before message {shown.id}" for shown in tail)
        )


async def run_strategy(
    request: Request,
    plan: Plan,
    on_fallback: Callable[[CompressionError], Awaitable[None]] | None = None,
) -> Condensation:
    """Return the strategy's answer, accepted; raise `CompressionError` if there is none.

    Where a compression is due and has a fallback, that takes the place of a failed summary;
    `on_fallback` is awaited with the error before it does. The cost is that of all calls, also of
    those that failed.
    """
    with track_spending() as spent:
        try:
            answer = await _answer(request, plan)
            fills = request.fills and request.strategy.id not in STOP_AT_TARGET
            if fills and not answer.is_unchanged:
                answer = await compute_async(refill, plan, answer, request.goal)
            answer = await _accept(request, plan, answer)
        except CompressionError as error:
            if not request.is_due or request.fallback is None:
                raise
            if on_fallback is not None:
                await on_fallback(error)
            answer = await _fall_back(request, plan, error)
    return replace(answer, cost=spent.total(otherwise=answer.cost))


async def _answer(request: Request, plan: Plan) -> Condensation:
    try:
        async with watch_calls(request.timeout, request.on_part, request.parts):
            return await request.strategy.condense(plan)
    except TimeoutError:
        raise SummaryError(
            f"the summary by {request.author!r} was given up after {request.timeout:g} s; try again"
        ) from None


async def _accept(request: Request, plan: Plan, answer: Condensation) -> Condensation:
    answer = await compute_async(accept, plan, answer, may_be_unchanged=request.may_be_unchanged)
    if answer.is_unchanged:
        return answer
    after = tokens_after(request, plan, answer)
    least = minimum_gain(request) if request.must_pay else 1
    if after > request.tokens_before - least:
        raise no_gain(answer, request.tokens_before, after)
    if request.is_due and request.allowed is not None and after > request.allowed:
        raise UncompressibleError(
            f"the strategy {answer.strategy} ends at {after + request.estimate:,} tokens, and "
            f"{request.allowed + request.estimate:,} are allowed; use a model with a larger "
            "window, or another strategy"
        )
    return answer


async def _fall_back(request: Request, plan: Plan, error: CompressionError) -> Condensation:
    """Return the answer of the request's fallback; raise the error if that fails too."""
    target = request.goal if request.allowed is None else min(request.goal, request.allowed)
    plan = replace(plan, target=target)
    try:
        if request.fallback == "local":
            answer = await summarized_locally(plan, str(error))
        else:
            answer = await compute_async(truncated, plan, str(error))
        return await _accept(request, plan, answer)
    except CompressionError as other:
        what = "the built-in summarizer" if request.fallback == "local" else "truncating"
        raise type(error)(f"{error}; {what} did not help either: {other}") from error


def tokens_after(request: Request, plan: Plan, answer: Condensation) -> int:
    """Return the tokens of the view after the condensation."""
    pointers = pointers_that_hold(request, answer)
    fewer = sum(plan.counts[index] - shown.tokens for index, shown in pointers.items())
    return answer.tokens(plan) - fewer


def pointers_that_hold(request: Request, answer: Condensation) -> Mapping[int, ShownMessage]:
    """Return the edits that point to other messages and may be shown again, by index.

    A strategy works on a view without such pointers. Afterwards an edit may return if nothing was
    summarized, it was kept, and what it points to is kept too, in full or by an edit that holds.
    """
    sent = request.sent_view
    if sent is None or answer.summary is not None:
        return {}
    kept = {entry.index for entry in answer.entries if isinstance(entry, KeptMessage)}
    places = {shown.id: index for index, shown in enumerate(sent.shown)}
    pointing = {index for index, shown in enumerate(sent.shown) if shown.points_to}
    holding = pointing & kept
    while True:
        firm = (kept - pointing) | holding
        still = {
            index
            for index in holding
            if all(places.get(id) in firm for id in sent.shown[index].points_to)
        }
        if still == holding:
            return {index: sent.shown[index] for index in holding}
        holding = still


def make_outcome(request: Request, plan: Plan, answer: Condensation, *, seconds: float) -> Outcome:
    """Return the outcome of an accepted answer."""
    summary, after = answer.summary, tokens_after(request, plan, answer)
    return Outcome(
        "compressed",
        tokens_before=request.tokens_before,
        tokens_after=after,
        messages=len(summary.indexes) if summary is not None else 0,
        edited=len(answer.edits),
        summary=summary.text if summary is not None else None,
        author=summary.author if summary is not None else answer.strategy,
        strategy=answer.strategy,
        seconds=seconds,
        receipt=answer.receipt,
        cost=answer.cost,
        saved=savings(request.tokens_before, after, request.prices).later_turn,
        steps=answer.steps,
        operations=answer.operations,
        warnings=(*plan_warnings(request, plan, after), *answer.warnings),
    )


def minimum_gain(request: Request) -> int:
    """Return the tokens that a compression must free, or the next one comes too soon.

    That is ten turns of the recent pace, or a fifth of the limit if that is less.
    """
    shown = request.view.shown
    turns = [index for index, each in enumerate(shown) if is_from_user(each.message)][-TURNS:]
    limit = request.goal if request.limit is None else request.limit
    wanted = int(limit * GAIN_SHARE)
    if not turns:
        return wanted
    pace = sum(each.tokens for each in shown[turns[0] :]) // len(turns)
    return min(wanted, TURNS * pace)


def small_gain_warning(freed: int, wanted: int) -> str:
    """Return the warning about a compression that does not pay."""
    return (
        f"a compression frees {freed:,} tokens, less than the {wanted:,} that keep the next one "
        "away; the next one waits until the context has grown by as much"
    )


def cut_warnings(plan: Plan) -> list[str]:
    """Return warnings about instructions and messages that should stay and do not fit."""
    warnings = []
    if plan.rules_left_out:
        warnings.append(
            f"{number(plan.rules_left_out, 'message')} with rules or context left the view, in "
            "part or whole, because they take more than a quarter of the goal; pin what must stay"
        )
    if plan.shortened:
        warnings.append(
            f"shown in part, because the view would not fit otherwise: "
            f"{number(plan.shortened, 'message')} that must stay; a larger window shows them whole"
        )
    return warnings


def plan_warnings(request: Request, plan: Plan, after: int) -> tuple[str, ...]:
    """Return what the user should know about the size of the result."""
    warnings: list[str] = []
    if plan.split.overshoot:
        warnings.append(
            f"{plan.split.tail_tokens:,} tokens stay verbatim, {plan.split.overshoot:,} more than "
            "asked for: tool calls stay with their results, and the last user message stays"
        )
    limit = request.limit or request.goal
    if plan.standing_tokens > limit * STANDING_SHARE:
        warnings.append(
            f"instructions, pins and rules that stay take {plan.standing_tokens:,} tokens, more "
            f"than {STANDING_SHARE:.0%} of {limit:,}; release what no longer holds"
        )
    warnings += cut_warnings(plan)
    if plan.is_tightened:
        warnings.append("the context is tight: less stays verbatim, or the summary is shorter")
    if after > request.goal:
        warnings.append("the context is critically limited: the next compression is not far away")
    return tuple(warnings)
