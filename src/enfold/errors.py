"""The error tree: every error that enfold raises, with its API status and exit code.

EnfoldError
├── InputError                 the input cannot be read
│   └── DialectError           JSON, but not a conversation of that dialect
├── ConfigError                a setting, option or name that does not exist or does not fit
├── NotFoundError              no such session, message, snapshot, model or profile
├── TokenCountError            a count could not be made; never approximated instead
├── RestoreError               a ledger that does not belong to this conversation
├── UnfinishedError            some of many files failed; the others are done
├── CompressionError           a compression did not end in a usable view
│   ├── SummaryError           the summarizer failed or returned no usable summary
│   │   └── NoSummaryError     the model answered, but not with a summary
│   ├── NoGainError            the result would not have been smaller
│   ├── UncompressibleError    the messages that must stay are larger than the limit
│   └── ConflictError          another compression of this branch was recorded first
├── GatewayError               a model call failed
│   ├── AuthenticationError    the provider does not accept the key
│   ├── RateLimitError         too many requests, or the quota is used up
│   ├── ContextOverflowError   the request is larger than the model's window
│   ├── UnavailableError       unreachable, too slow, or failing: try again
│   ├── RefusedError           the model or a filter declined to answer
│   └── BadReplyError          the reply is empty, cut off or malformed
├── BlockedError               the session is blocked until a retry or an acknowledgement
├── AccessError                the caller may not do this
│   └── TokenError             the access token is missing or invalid
├── LimitError                 a limit of the server is exceeded
│   ├── TooLargeError          the body of a request is too large
│   ├── TooSlowError           a request did not arrive in time
│   └── TooManyError           too many requests; retry later
│       └── OverloadError      the server is busy; retry later
└── StoreError                 the database failed
    ├── StoreUnavailableError  locked, full, or unreachable: try again
    ├── StoreVersionError      written by a newer enfold
    └── IntegrityError         a stored message no longer matches its digest

Errors of other libraries are converted to these where the library is called. A message names the
cause, the wrong value and the remedy; it never contains message text or a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


class EnfoldError(Exception):
    """The base class of all errors that enfold raises."""


class InputError(EnfoldError):
    """The input cannot be read; `place` is the position, outermost part first."""

    def __init__(self, reason: str, *, place: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place

    def at(self, outer: str) -> InputError:
        """Return the same error with a longer place."""
        joint = "" if not self.place or self.place.startswith("[") else "."
        return type(self)(self.reason, place=f"{outer}{joint}{self.place}")

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}" if self.place else self.reason


@contextmanager
def file_errors(verb: str, place: str) -> Iterator[None]:
    """Raise an `InputError` in place of an `OSError`: the file cannot be read, or written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot be {verb}: {error.strerror or error}", place=place) from None


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
    """Some of many files failed; the others are done. Run it again for the rest."""


class CompressionError(EnfoldError):
    """A compression did not end in a usable view. Nothing was recorded."""


class SummaryError(CompressionError):
    """The summarizer failed or returned no usable summary; `cost` is the cost of its answer."""

    def __init__(self, reason: str, *, cost: float | None = 0.0) -> None:
        super().__init__(reason)
        self.cost = cost


class NoSummaryError(SummaryError):
    """The model's answer is no summary of the conversation. The built-in summarizer replaces it."""


class NoGainError(CompressionError):
    """The result would not have been smaller. Nothing was changed."""


class UncompressibleError(CompressionError):
    """The messages that must stay verbatim are larger than the limit."""


class ConflictError(CompressionError):
    """Another compression of this branch was recorded first."""


class GatewayError(EnfoldError):
    """A model call failed."""


class AuthenticationError(GatewayError):
    """The provider does not accept the key."""


class RateLimitError(GatewayError):
    """Too many requests, or the quota is used up; `retry_after` seconds, if reported."""

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class ContextOverflowError(GatewayError):
    """The request is larger than the model's window; `window` is its tokens, if reported."""

    def __init__(self, reason: str, *, window: int | None = None) -> None:
        super().__init__(reason)
        self.window = window


class UnavailableError(GatewayError):
    """The provider is unreachable, too slow, or failing; try again."""


class RefusedError(GatewayError):
    """The model or a filter declined to answer."""


class BadReplyError(GatewayError):
    """The reply is empty, cut off or malformed."""


class BlockedError(EnfoldError):
    """A compression that was due failed; retry it, or acknowledge the risk to continue."""

    def __init__(self, reason: str, *, session: str | None = None, cause: str = "") -> None:
        """`cause` is the code of the error that made the compression fail."""
        super().__init__(reason)
        self.session = session
        self.cause = cause


class AccessError(EnfoldError):
    """The caller may not do this."""


class TokenError(AccessError):
    """The access token is missing or invalid."""


class LimitError(EnfoldError):
    """A limit of the server is exceeded."""


class TooLargeError(LimitError):
    """The body of a request is too large."""


class TooSlowError(LimitError):
    """A request did not arrive in time."""


class TooManyError(LimitError):
    """Too many requests; the next one is accepted after `retry_after` seconds."""

    def __init__(self, reason: str, *, retry_after: float) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class OverloadError(TooManyError):
    """The server has no room for another request; the next attempt may succeed."""


class StoreError(EnfoldError):
    """The database failed."""


class StoreUnavailableError(StoreError):
    """The database is locked, full, or unreachable; nothing was written, try again."""


class StoreVersionError(StoreError):
    """The database was written by a newer enfold."""


class IntegrityError(StoreError):
    """A stored message no longer matches its digest."""


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """An error's API code and HTTP status, its exit code, and if a retry may help."""

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
    NoSummaryError: ErrorFacts("no_summary", 502, 4, retryable=True),
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
    OverloadError: ErrorFacts("overloaded", 503, 5, retryable=True),
    StoreError: ErrorFacts("store_failed", 500, 5),
    StoreUnavailableError: ErrorFacts("store_unavailable", 503, 5, retryable=True),
    StoreVersionError: ErrorFacts("store_too_new", 500, 5),
    IntegrityError: ErrorFacts("integrity", 500, 5),
}
"""One row per error, for all doors."""


def facts(error: EnfoldError) -> ErrorFacts:
    """Return the row of the error's class or of its nearest base class."""
    return next(FACTS[kind] for kind in type(error).__mro__ if kind in FACTS)
