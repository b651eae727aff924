"""Planning: how tight a compression must be, settled before any model is called.

A summary is held to its limit, so what a view will take at most is known in advance: what stays,
and the limit. The plan is the first of a few, each tighter than the one before, that ends at or
below the goal; if none does, the tightest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from enfold.messages import Message
from enfold.retention import Retention, Split, split

SUMMARY_SHARE = 10
"""A summary takes at most one token for so many of what it folds."""
SMALLEST_SUMMARY = 256
TIGHTEST_SUMMARY = 64

_TIGHTER = ((1.0, 1.0), (1.0, 0.5), (0.5, 0.5), (0.25, 0.25), (0.0, 0.25), (0.0, 0.05))
"""Shares of the retention and of the summary's limit, from loose to tight."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What a compression should come to."""

    retention: Retention
    goal: int
    """Tokens at or below which the view should end."""
    summary_tokens: int | None = None
    """The summary's limit. None: a tenth of what it folds."""
    previous_tokens: int = 0
    """What the summary in the view takes now. 0 if there is none."""
    previous_at: int = 0
    """Where it stands: before the message of this index."""
    settled: int = 0
    """So many messages are behind the cutoff already; a plan must reach beyond them."""
    room: int | None = None
    """What may come after the user's last message before it is pinned. None: the goal."""
    fence: int = 0
    """What a summary takes in a view beside its text."""


@dataclass(frozen=True, slots=True)
class SizedSplit:
    """What stays, how long the summary may be, and what the view then takes at most."""

    split: Split
    summary_tokens: int
    most: int
    folds_nothing: bool
    """True if there is nothing to summarize, or nothing new."""
    is_tightened: bool = False


def plan(messages: Sequence[Message], counts: Sequence[int], aim: Aim) -> SizedSplit:
    """The loosest plan whose view ends at or below the goal, or the tightest there is."""
    plans = tuple(_plan(messages, counts, aim, *shares) for shares in _TIGHTER)
    folding = [candidate for candidate in plans if not candidate.folds_nothing]
    fits = sum(counts) + aim.previous_tokens <= aim.goal
    if not folding or (fits and plans[0].folds_nothing):
        return plans[0]
    reaching = (candidate for candidate in folding if candidate.most <= aim.goal)
    return next(reaching, min(folding, key=lambda candidate: candidate.most))


def _plan(
    messages: Sequence[Message],
    counts: Sequence[int],
    aim: Aim,
    kept_share: float,
    summary_share: float,
) -> SizedSplit:
    policy = replace(aim.retention, amount=aim.retention.amount * kept_share)
    divided = split(messages, counts, policy, room=aim.goal if aim.room is None else aim.room)
    if aim.previous_tokens and divided.head > aim.previous_at:
        divided = replace(divided, head=aim.previous_at)
    planned = plan_for(counts, divided, aim, summary_share)
    return replace(planned, is_tightened=kept_share * summary_share < 1)


def plan_for(
    counts: Sequence[int], divided: Split, aim: Aim, summary_share: float = 1.0
) -> SizedSplit:
    """The plan for a division that is settled."""
    folded = sum(counts[index] for index in divided.middle if index != divided.pinned)
    kept = sum(counts) - folded + aim.fence
    limit = int((aim.summary_tokens or _summary_limit(folded, kept, aim)) * summary_share)
    limit = max(TIGHTEST_SUMMARY, limit)
    most = kept + limit
    return SizedSplit(divided, limit, most, divided.is_empty or divided.cut <= aim.settled)


def _summary_limit(folded: int, kept: int, aim: Aim) -> int:
    """A tenth of what is folded, on top of the previous summary; at most a third of the goal.

    A first summary may take all that the rest leaves of the goal: where that is more, the goal is
    so far below the history that nothing else is worth the room. One that is continued may not, or
    it would fill the view in the end.
    """
    wanted = aim.previous_tokens + folded // SUMMARY_SHARE
    most = aim.goal // 3
    if not aim.previous_tokens:
        most = max(most, aim.goal - kept)
    return min(max(SMALLEST_SUMMARY, wanted), most)
