"""Retention: the part of a history that stays verbatim in a compression.

A policy says how much of the newest part to keep; `split` turns it into a division at legal cut
points. The budget is a target and the rules win over it: whole tool groups, never an empty tail,
the last user message verbatim. If the tail is larger than requested, the difference is reported.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

from enfold.errors import ConfigError
from enfold.history import answers_a_call, cut_points, last_user_message
from enfold.messages import Message

DEFAULT_RETENTION_TOKENS = 1_000
RECENT_MESSAGES_RATIO = 0.2

Measure: TypeAlias = Literal["tokens", "ratio", "messages", "percent"]


@dataclass(frozen=True, slots=True)
class Retention:
    """Size of the newest part that stays, and number of first messages that stay."""

    by: Measure = "tokens"
    amount: float = DEFAULT_RETENTION_TOKENS
    """Tokens; a share of the tokens (0–1); messages; or a percentage of the messages (0–100)."""
    keep_first: int = 0
    """Messages at the beginning that stay. `standing.after_instructions` adds leading ones."""
    is_default: bool = False
    """True if the amount is the default, so that a large limit may keep more."""
    keeps_words: bool = False
    """True if words of people stay before other content does."""

    def __post_init__(self) -> None:
        highest = {"tokens": None, "ratio": 1, "messages": None, "percent": 100}
        if self.by not in highest:
            raise ConfigError(f"retention by {self.by!r}: expected one of {', '.join(highest)}")
        limit = highest[self.by]
        if self.amount < 0 or (limit is not None and self.amount > limit):
            allowed = "0 or more" if limit is None else f"between 0 and {limit}"
            raise ConfigError(f"retention by {self.by}: {self.amount:g} is not {allowed}")
        if self.keep_first < 0:
            raise ConfigError(f"keep_first: {self.keep_first} is not 0 or more")


@dataclass(frozen=True, slots=True)
class Split:
    """A history divided: `[:head]` and `[cut:]` stay, the middle between them is summarized."""

    head: int
    cut: int
    tail_tokens: int
    overshoot: int = 0
    """Tokens by which the tail is larger than requested."""
    kept: frozenset[int] = frozenset()
    """Messages that stay in their place wherever they stand, such as the last user message."""

    @property
    def middle(self) -> range:
        """The indexes between head and tail, those of kept messages included."""
        return range(self.head, max(self.head, self.cut))

    @property
    def summarized(self) -> tuple[int, ...]:
        """The indexes of the messages that a summary replaces."""
        return tuple([index for index in self.middle if index not in self.kept])

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to summarize."""
        return all(index in self.kept for index in self.middle)


@dataclass(frozen=True, slots=True)
class Zones:
    """A history by age: `[:first]` and `[recent:]` stay as they are, what lies between is old."""

    first: int
    recent: int

    @property
    def old(self) -> range:
        """The indexes between."""
        return range(self.first, max(self.first, self.recent))


def zones(counts: Sequence[int], retention: Retention) -> Zones:
    """Return the messages that a policy allows to edit; unlike a cut, inside tool groups too.

    `counts` are the messages' tokens, as for `split`.
    """
    wanted, _ = _MEASURES[retention.by](_tail_tokens(counts), retention.amount)
    return Zones(min(retention.keep_first, len(counts)), wanted)


def split(
    messages: Sequence[Message],
    counts: Sequence[int],
    retention: Retention,
    *,
    room: int | None = None,
) -> Split:
    """Divide the messages, whose token counts are given, as the policy asks.

    The tail begins at or before the last user message. Where all that came after it does not fit
    into `room` tokens, as in a long run of an agent, the cut falls later and the message is kept in
    the middle, unless it also answers a call: then it cannot stand alone.
    """
    points = cut_points(messages)
    tails = _tail_tokens(counts)
    wanted, requested = _MEASURES[retention.by](tails, retention.amount)
    cut = _first_point(points, wanted, len(messages))
    user = last_user_message(messages)
    kept: frozenset[int] = frozenset()
    if user is not None and user < cut:
        before_user = points[bisect_right(points, user) - 1]
        if room is None or tails[before_user] <= room or answers_a_call(messages[user]):
            cut = before_user
        else:
            kept = frozenset({user})
    head = min(_first_point(points, retention.keep_first, len(messages) + 1), cut)
    kept = frozenset(index for index in kept if index >= head)
    return Split(head, cut, tails[cut], max(0, tails[cut] - requested), kept)


def requested_tokens(counts: Sequence[int], retention: Retention) -> int:
    """Return the tokens that the policy asks to keep of messages with these counts."""
    return _MEASURES[retention.by](_tail_tokens(counts), retention.amount)[1]


def _first_point(points: Sequence[int], wanted: int, below: int) -> int:
    """Return the first legal cut at or after the wanted place, else the last that leaves a tail."""
    usable = max(1, bisect_left(points, below))
    return points[min(bisect_left(points, wanted), usable - 1)]


def _tail_tokens(counts: Sequence[int]) -> list[int]:
    """Return for every index the tokens from there to the end; the last entry, 0, is the end."""
    return [0, *accumulate(reversed(counts))][::-1]


def _within(tails: Sequence[int], budget: int) -> tuple[int, int]:
    return next(index for index, tokens in enumerate(tails) if tokens <= budget), budget


def _newest(tails: Sequence[int], number: int) -> tuple[int, int]:
    first = max(0, len(tails) - 1 - number)
    return first, tails[first]


_MEASURES: Mapping[Measure, Callable[[Sequence[int], float], tuple[int, int]]] = {
    "tokens": lambda tails, tokens: _within(tails, int(tokens)),
    "ratio": lambda tails, share: _within(tails, int(tails[0] * share)),
    "messages": lambda tails, number: _newest(tails, int(number)),
    "percent": lambda tails, percent: _newest(tails, int((len(tails) - 1) * percent / 100)),
}
"""Returns the first message to keep, and the tokens from there."""
