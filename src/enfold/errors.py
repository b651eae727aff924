"""The error tree: every failure enfold raises on purpose, and what each door says of it.

EnfoldError
├── InputError                 what came in cannot be read
│   └── DialectError           JSON, but not a conversation of that dialect
├── ConfigError                a setting, option or name that does not exist or does not fit
├── NotFoundError              no such session, message, snapshot, model or profile
├── TokenCountError            a count could not be made; never approximated instead
├── RestoreError               a ledger that does not belong to this conversation
├── UnfinishedError            some of many files could not be done; the others are
├── CompressionError           a compression did not end in a usable view
│   ├── SummaryError           the summarizer failed, or gave nothing usable
│   ├── NoGainError            the result would not have been smaller
│   ├── UncompressibleError    what must stay is larger than the limit
│   └── ConflictError          another compression of this branch was recorded first
├── GatewayError               a model could not be asked, or gave no answer
│   ├── AuthenticationError    the provider does not accept the key
│   ├── RateLimitError         too many requests, or the quota is used up
│   ├── ContextOverflowError   the request is larger than the model's window
│   ├── UnavailableError       out of reach, too slow, or failing: try again
│   ├── RefusedError           the model, or a filter before it, declined to answer
│   └── BadReplyError          what came back is no answer
├── BlockedError               the session waits for a retry or for the risk to be acknowledged
├── AccessError                the caller may not do this
│   └── TokenError             no access token came along, or one that nobody knows
├── LimitError                 more than the server takes from one caller
│   ├── TooLargeError          a request's body is larger than it may be
│   ├── TooSlowError           a request did not arrive in time
│   └── TooManyError           too many requests; come back in a moment
└── StoreError                 the database failed
    ├── StoreUnavailableError  locked, full, or out of reach: try again
    ├── StoreVersionError      written by a newer enfold
    └── IntegrityError         a stored message no longer matches its digest

Errors of foreign libraries are turned into these where they enter, once. A message says what
failed, with which value, and what to do; it never holds message text or a key.
"""

from __future__ import annotations

from dataclasses import dataclass


class EnfoldError(Exception):
    """Any failure that enfold raises on purpose."""


class InputError(EnfoldError):
    """What came in cannot be read; `place` says where, outermost first."""

    def __init__(self, reason: str, *, place: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place

    def at(self, outer: str) -> InputError:
        """The same error, seen from one level further out."""
        joint = "" if not self.place or self.place.startswith("[") else "."
        return type(self)(self.reason, place=f"{outer}{joint}{self.place}")

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason


class DialectError(InputError):
    """The value is JSON, but not a conversation of the dialect."""


class ConfigError(EnfoldError):
    """A setting, option or name that does not exist or does not fit."""


class NotFoundError(EnfoldError):
    """No such session, message, snapshot, model or profile."""


class TokenCountError(EnfoldError):
    """A count could not be made. Nothing was approximated in its place; try again."""


class RestoreError(EnfoldError):
    """The ledger does not belong to this conversation, or the conversation was altered."""


class UnfinishedError(EnfoldError):
    """Some of many files could not be done. The others are; run it again for the rest."""


class CompressionError(EnfoldError):
    """A compression did not end in a usable view. Nothing was recorded."""


class SummaryError(CompressionError):
    """The summarizer failed, or gave nothing usable; `cost` is what its answer cost."""

    def __init__(self, reason: str, *, cost: float | None = 0.0) -> None:
        super().__init__(reason)
        self.cost = cost


class NoGainError(CompressionError):
    """The result would not have been smaller. Nothing was changed."""


class UncompressibleError(CompressionError):
    """What must stay verbatim is larger than the limit."""


class ConflictError(CompressionError):
    """Another compression of this branch was recorded first."""


class GatewayError(EnfoldError):
    """A model could not be asked, or gave no answer."""


class AuthenticationError(GatewayError):
    """The provider does not accept the key."""


class RateLimitError(GatewayError):
    """Too many requests, or the quota is used up; `retry_after` seconds, where it was said."""

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class ContextOverflowError(GatewayError):
    """The request is larger than the model's window."""


class UnavailableError(GatewayError):
    """The provider is out of reach, too slow, or failing; try again."""


class RefusedError(GatewayError):
    """The model, or a filter before it, declined to answer."""


class BadReplyError(GatewayError):
    """What came back is no answer: empty, cut off, or not what the protocol says."""


class BlockedError(EnfoldError):
    """A compression that was due failed; retry it, or acknowledge the risk to go on."""

    def __init__(self, reason: str, *, session: str | None = None) -> None:
        super().__init__(reason)
        self.session = session


class AccessError(EnfoldError):
    """The caller may not do this."""


class TokenError(AccessError):
    """No access token came along, or one that nobody knows."""


class LimitError(EnfoldError):
    """More than the server takes from one caller."""


class TooLargeError(LimitError):
    """The body of a request is larger than it may be."""


class TooSlowError(LimitError):
    """A request did not arrive in time."""


class TooManyError(LimitError):
    """Too many requests; `retry_after` seconds later there is room again."""

    def __init__(self, reason: str, *, retry_after: float) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class StoreError(EnfoldError):
    """The database failed."""


class StoreUnavailableError(StoreError):
    """The database is locked, full, or out of reach; nothing was written, try again."""


class StoreVersionError(StoreError):
    """The database was written by a newer enfold."""


class IntegrityError(StoreError):
    """A stored message no longer matches its digest."""


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """What the doors say of an error: API code and status, exit code, worth a retry or not."""

    code: str
    status: int
    exit_code: int
    retryable: bool = False


FACTS: dict[type[EnfoldError], ErrorFacts] = {
    EnfoldError: ErrorFacts("error", 500, 1),
    InputError: ErrorFacts("bad_input", 400, 2),
    DialectError: ErrorFacts("bad_conversation", 400, 2),
    ConfigError: ErrorFacts("bad_setting", 400, 2),
    NotFoundError: ErrorFacts("not_found", 404, 2),
    TokenCountError: ErrorFacts("count_failed", 503, 3, retryable=True),
    RestoreError: ErrorFacts("wrong_ledger", 409, 2),
    UnfinishedError: ErrorFacts("unfinished", 500, 1),
    CompressionError: ErrorFacts("compression_failed", 502, 4, retryable=True),
    SummaryError: ErrorFacts("summary_failed", 502, 4, retryable=True),
    NoGainError: ErrorFacts("no_gain", 409, 4),
    UncompressibleError: ErrorFacts("uncompressible", 413, 4),
    ConflictError: ErrorFacts("conflict", 409, 4, retryable=True),
    GatewayError: ErrorFacts("model_failed", 502, 5),
    AuthenticationError: ErrorFacts("authentication_failed", 502, 5),
    RateLimitError: ErrorFacts("rate_limited", 503, 5, retryable=True),
    ContextOverflowError: ErrorFacts("context_overflow", 413, 5),
    UnavailableError: ErrorFacts("model_unavailable", 503, 5, retryable=True),
    RefusedError: ErrorFacts("model_refused", 502, 5),
    BadReplyError: ErrorFacts("bad_reply", 502, 5, retryable=True),
    BlockedError: ErrorFacts("blocked", 409, 4, retryable=True),
    AccessError: ErrorFacts("forbidden", 403, 5),
    TokenError: ErrorFacts("token_required", 401, 5),
    LimitError: ErrorFacts("limit", 429, 5),
    TooLargeError: ErrorFacts("too_large", 413, 5),
    TooSlowError: ErrorFacts("too_slow", 408, 5, retryable=True),
    TooManyError: ErrorFacts("too_many_requests", 429, 5, retryable=True),
    StoreError: ErrorFacts("store_failed", 500, 5),
    StoreUnavailableError: ErrorFacts("store_unavailable", 503, 5, retryable=True),
    StoreVersionError: ErrorFacts("store_too_new", 500, 5),
    IntegrityError: ErrorFacts("integrity", 500, 5),
}
"""One row per error; a door never decides these for itself."""


def facts(error: EnfoldError) -> ErrorFacts:
    """The row of the nearest ancestor, so that a new error is never without one."""
    return next(FACTS[kind] for kind in type(error).__mro__ if kind in FACTS)
