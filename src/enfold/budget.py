"""Budget: the limits of a request and the decision to compress, as pure functions.

Two guards decide, and each has its own margin.

- The threshold, a share of the limit: `limit = max input − safety margin − reserved`. Reserved is
  what is sent beside the history: system prompt, tools, files, the pending input. With the default
  threshold of 0.95 and the margin of 5 % a history may fill 90.25 % of a model's input.
- The hard guard over the whole window, `should_condense`: a percentage of the window reached, or
  less than the reply and a tenth of the window left. The second condition applies even where
  automatic compression is turned off, because such a request would fail.

Counts are exact for one tokenizer. Where a model has another, its limits are divided by the stated
correction factor; counts never are. What has no exact count (images, documents, opaque reasoning)
comes in as an estimate of its own and is shown apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import ClassVar, Literal, TypeAlias

from enfold.errors import ConfigError

SAFETY_MARGIN = 0.05
DEFAULT_THRESHOLD = 0.95
COMPRESSION_TRIGGER_RATIO = 0.75
EARLY_MARK = 0.8
"""Share of the threshold from which a compression in the background may start."""
FREED_TARGET = 0.6
"""Share of the limit at or below which an automatic compression must end."""
FREED_WITH_CACHE = 0.4
"""The same where the provider caches prompts. Every compression discards the cached prompt, so few
compressions that free much cost least."""
FREED_BELOW_GUARDS = 0.75
"""Share of the tokens that the lowest guard allows at or below which it must end too."""
AUTO_FLOOR = 2_000
"""No automatic compression of fewer tokens than this."""

MIN_CONDENSE_THRESHOLD = 5
"""The lowest threshold that a profile may have, in percent."""
MAX_CONDENSE_THRESHOLD = 100
"""The highest threshold that a profile may have, in percent."""
INHERIT = -1
"""A profile's threshold that leaves it to the model and the settings."""
TOKEN_BUFFER_PERCENTAGE = 0.1
"""Share of the window that the hard guard leaves free beside the reply."""
DEFAULT_MAX_TOKENS = 8_192
"""Tokens that the hard guard reserves for a reply if the request names no maximum."""

Action: TypeAlias = Literal["keep", "should", "must"]
Reason: TypeAlias = Literal[
    "fits", "below_floor", "turned_off", "early_mark", "threshold", "max_tokens", "window"
]


@dataclass(frozen=True, slots=True)
class Limits:
    """A model's limits, in its own tokens."""

    max_input: int
    max_output: int
    correction: float = 1.0
    """The model's tokens for each counted token."""

    @property
    def window(self) -> int:
        """The whole window in counted tokens."""
        return int((self.max_input + self.max_output) / self.correction)

    @property
    def input(self) -> int:
        """The largest input in counted tokens."""
        return int(self.max_input / self.correction)


@dataclass(frozen=True, slots=True)
class Load:
    """The size of a request, in counted tokens."""

    history: int
    """Summary and messages."""
    system: int = 0
    tools: int = 0
    files: int = 0
    pending: int = 0
    estimate: int = 0
    """Estimated tokens of content without an exact count, in or beside the history."""

    @property
    def reserved(self) -> int:
        """Tokens of everything but the history."""
        return self.system + self.tools + self.files + self.pending

    @property
    def total(self) -> int:
        """Tokens of the whole request, the estimate included."""
        return self.history + self.reserved + self.estimate


@dataclass(frozen=True, slots=True)
class Threshold:
    """A share of the limit, and the level that set it."""

    share: float
    """Share of the limit at which a compression is due, 0.05 to 1."""
    source: str
    note: str = ""
    """Settings that were ignored, with reasons."""

    def __post_init__(self) -> None:
        lowest, highest = MIN_CONDENSE_THRESHOLD / 100, MAX_CONDENSE_THRESHOLD / 100
        if not lowest <= self.share <= highest:
            raise ConfigError(
                f"threshold {self.share:g} set by {self.source}: expected {lowest:g} to {highest:g}"
            )


@dataclass(frozen=True, slots=True)
class Policy:
    """When to compress."""

    threshold: Threshold = Threshold(DEFAULT_THRESHOLD, "default")
    margin: float = SAFETY_MARGIN
    max_tokens: int | None = None
    """An absolute number of tokens instead of the threshold. None for the threshold."""
    automatic: bool = True
    """False: a compression is due only if too little room is left for a reply."""
    floor: int = AUTO_FLOOR
    early_mark: float = EARLY_MARK


DEFAULT_POLICY = Policy()
BRANCH_AWARE = Policy(Threshold(COMPRESSION_TRIGGER_RATIO, "policy"), margin=0.0)
"""Three quarters of what is available, without a margin."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision to compress or not, its reason and its figures."""

    JSON_FIELDS: ClassVar = (
        "action",
        "reason",
        "words",
        "tokens",
        "limit",
        "threshold_tokens",
        "early_tokens",
        "hard_tokens",
    )
    action: Action
    """`keep`, `should` or `must` compress."""
    reason: Reason
    """One word for programs."""
    tokens: int
    """Counted tokens of the history, estimate included."""
    limit: int
    """The maximum tokens of the history."""
    threshold_tokens: int
    """The tokens above which a compression must come first: what the lowest guard allows."""
    early_tokens: int
    """The tokens above which one may start in the background."""
    hard_tokens: int
    """Largest history that the hard guard's absolute limit allows."""
    guard: Reason
    """The guard that sets `threshold_tokens`: `threshold`, `max_tokens` or `window`."""
    ceiling: int
    """Largest history that fits the model beside the rest and the reply."""
    goal: int
    """The goal of a compression, in tokens of the history, estimate included."""
    threshold: Threshold
    load: Load
    correction: float

    @property
    def words(self) -> str:
        """The decision for people, with its figures."""
        return str(self)

    @property
    def can_wait(self) -> bool:
        """True if the request can be sent before a compression that is due."""
        return self.tokens <= self.ceiling

    @property
    def utilization(self) -> float:
        """Share of the limit in use: 0 to 1, and above where it does not fit."""
        return self.tokens / self.limit if self.limit > 0 else float(self.tokens > 0)

    def __str__(self) -> str:
        return f"{self.action}: {_WORDS[self.reason].format(d=self)}"


_WORDS: dict[Reason, str] = {
    "fits": "{d.tokens:,} of {d.limit:,} tokens, below the threshold of {d.threshold_tokens:,}",
    "below_floor": "{d.tokens:,} tokens are too few to compress automatically",
    "turned_off": "automatic compression is turned off; {d.tokens:,} of {d.limit:,} tokens",
    "early_mark": "{d.tokens:,} tokens are past the early mark of {d.early_tokens:,}",
    "threshold": "{d.tokens:,} tokens exceed the threshold of {d.threshold_tokens:,}",
    "max_tokens": "{d.tokens:,} tokens exceed the maximum of {d.threshold_tokens:,}",
    "window": "{d.tokens:,} tokens leave too little space for a reply; at most "
    "{d.hard_tokens:,} are allowed",
}


def decide(
    load: Load, limits: Limits, policy: Policy = DEFAULT_POLICY, *, max_output: int | None = None
) -> Decision:
    """Decide if this load must be compressed before it is sent; `max_output` is the request's."""
    # Reserve at most the model's longest answer, even if a client asks for more, and at most half
    # of the window.
    window, largest_input, reserved = limits.window, limits.input, load.reserved
    reply = min(max_output or DEFAULT_MAX_TOKENS, limits.max_output, window // 2)
    tokens = load.history + load.estimate
    limit = largest_input - int(largest_input * policy.margin) - reserved
    hard = floor(_allowed(window, reply) - reserved)
    guard, lowest = _lowest_guard(limit, hard, window, reserved, policy)
    threshold = max(lowest, min(policy.floor - 1, limit, hard))
    early = int(threshold * policy.early_mark)
    goal = min(limit * FREED_TARGET, lowest * FREED_BELOW_GUARDS)
    most = min(largest_input, window - reply)
    action: Action = "keep"
    reason: Reason = "fits"
    if tokens > threshold:
        action, reason = "must", guard
    elif tokens < policy.floor and tokens <= min(limit, hard):
        reason = "below_floor"
    elif not policy.automatic:
        reason = "turned_off"
    elif tokens > early:
        action, reason = "should", "early_mark"
    return Decision(
        action=action,
        reason=reason,
        tokens=tokens,
        limit=limit,
        threshold_tokens=threshold,
        early_tokens=early,
        hard_tokens=hard,
        guard=guard,
        ceiling=most - int(most * SAFETY_MARGIN) - reserved,
        goal=max(1, int(goal)),
        threshold=policy.threshold,
        load=load,
        correction=limits.correction,
    )


def _lowest_guard(
    limit: int, hard: int, window: int, reserved: int, policy: Policy
) -> tuple[Reason, int]:
    """Return the guard that acts first, and the tokens of the history that it allows.

    The arms of `should_condense` as tokens of the history, beside the threshold: the percentage of
    the window must not be reached, the others must not be exceeded.
    """
    if not policy.automatic:
        return "window", hard
    share, most = policy.threshold.share, policy.max_tokens
    own = int(limit * share) if most is None else most
    of_window = min(hard, ceil(round(window * share, 6)) - 1 - reserved)
    if of_window < own:
        return "window", of_window
    return "threshold" if most is None else "max_tokens", own


def should_condense(
    context_tokens: int,
    context_window: int,
    *,
    last_message_tokens: int = 0,
    max_tokens: int | None = None,
    threshold: float = MAX_CONDENSE_THRESHOLD,
    automatic: bool = True,
) -> bool:
    """Return True if the hard guard acts: a share of the window is reached, or no reply fits.

    `context_tokens` and `last_message_tokens` together are what is sent. Reaching the percentage
    is enough (`>=`); the absolute bound must be exceeded (`>`), and acts even if not `automatic`.
    """
    tokens = context_tokens + last_message_tokens
    reached = context_window <= 0 or 100 * tokens / context_window >= threshold
    return (automatic and reached) or tokens > _allowed(context_window, max_tokens)


def _allowed(window: int, max_tokens: int | None) -> float:
    return window * (1 - TOKEN_BUFFER_PERCENTAGE) - (max_tokens or DEFAULT_MAX_TOKENS)


def resolve_threshold(
    *,
    call: float | None = None,
    session: float | None = None,
    profile: float | None = None,
    model: float | None = None,
    default: float = DEFAULT_THRESHOLD,
) -> Threshold:
    """Return the threshold in force: the first that is set, from the call down to the default.

    A profile's is a percentage, 5 to 100, or a share; −1 inherits, and anything else is ignored
    with a note, because it may have been stored by hand. All others are shares of 1.
    """
    from_profile, note = _share_of_profile(profile)
    levels = {"call": call, "session": session, "profile": from_profile, "model": model}
    for source, share in levels.items():
        if share is not None:
            return Threshold(share, source, note)
    return Threshold(default, "default", note)


def _share_of_profile(percent: float | None) -> tuple[float | None, str]:
    if percent is None or percent == INHERIT:
        return None, ""
    try:
        return threshold_share(percent), ""
    except ConfigError as error:
        return None, f"the profile's threshold was ignored: {error}"


def threshold_share(value: float) -> float:
    """Return a threshold as a share of the limit; 5 to 100 is read as a percentage.

    Raises `ConfigError` for other values: between 1 and 5 the meaning would be a guess.
    """
    lowest, highest = MIN_CONDENSE_THRESHOLD / 100, MAX_CONDENSE_THRESHOLD / 100
    if lowest <= value <= highest:
        return value
    if MIN_CONDENSE_THRESHOLD <= value <= MAX_CONDENSE_THRESHOLD:
        return value / 100
    raise ConfigError(
        f"{value:g} is neither a share, {lowest:g} to {highest:g}, nor a percentage, "
        f"{MIN_CONDENSE_THRESHOLD} to {MAX_CONDENSE_THRESHOLD}"
    )
