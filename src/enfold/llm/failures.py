"""Failures of model calls, as errors of enfold.

A provider's message can repeat the key or the conversation, so it is not passed on. An error names
the model, the status and the provider's error code, and tells how to solve the problem.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from enfold.errors import (
    AuthenticationError,
    BadReplyError,
    ContextOverflowError,
    GatewayError,
    RateLimitError,
    RefusedError,
    UnavailableError,
)
from enfold.llm.calls import Connection
from enfold.wire import overflow_limit, says_overflow

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError

_FILTERS = frozenset({"content_filter", "content_policy_violation", "moderation_blocked"})
"""Error codes of content filters."""
_CREDENTIALS = frozenset(
    {
        "DefaultCredentialsError",
        "NoAuthTokenError",
        "NoCredentialsError",
        "PartialCredentialsError",
        "RefreshError",
        "TokenRetrievalError",
    }
)
"""Errors of the cloud providers' libraries, when the machine has no valid credentials."""
_SETTINGS = frozenset({"InvalidEndpointConfigurationError", "ParamValidationError"})
"""Errors of a cloud provider's library about its input, before anything is sent."""
_PLAIN_CODE = re.compile(r"[A-Za-z][A-Za-z_]{2,59}")
_FORBIDDEN = 403
_TOO_LARGE = 413
_SERVER_ERRORS = range(500, 600)


@dataclass(frozen=True, slots=True)
class CallFailure:
    """An error, and whether the call may be repeated after a pause."""

    error: GatewayError
    repeatable: bool = False
    pause: float | None = None
    """The pause that the provider requested, in seconds."""


@dataclass(frozen=True, slots=True)
class FailureKind:
    """A kind of failure: the error class, a description and advice."""

    error: type[GatewayError]
    what: str
    advice: str

    def at(self, connection: Connection, note: str = "") -> GatewayError:
        """Return the error for a connection."""
        return self.error(f"{connection.name} {self.what}{note}; {self.advice}")


_KEY = FailureKind(
    AuthenticationError, "does not accept the key", "check it, and what it may be used for"
)
_NO_CREDENTIALS = FailureKind(
    AuthenticationError,
    "found no valid credentials on this machine",
    "log in with the provider's own tool, or give the connection a key",
)
_RATE = FailureKind(
    RateLimitError, "accepts no more requests for now", "wait, or use another profile"
)
_QUOTA = FailureKind(
    RateLimitError, "has no quota left for this key", "check the account, or use another key"
)
_TOO_LONG = FailureKind(
    ContextOverflowError,
    "refuses the request as too long",
    "compress the conversation, or use a model with a larger window",
)
_SILENT = FailureKind(UnavailableError, "did not respond", "try again, or allow a longer time-out")
_OUT_OF_REACH = FailureKind(
    UnavailableError, "cannot be reached", "check the network and the base URL, and try again"
)
_FAILING = FailureKind(UnavailableError, "is failing", "try again later, or use another profile")
DECLINED = FailureKind(
    RefusedError, "declined to answer", "rephrase the request, or use another model"
)
_ABSENT = FailureKind(
    GatewayError, "does not exist", "check the model's name, the base URL and what the key may use"
)
_REJECTED = FailureKind(
    GatewayError, "refuses this request", "check the model's name, limits and settings"
)
_MISFIT = FailureKind(
    GatewayError, "cannot be called with this configuration", "check its key, base URL and options"
)
_UNREADABLE = FailureKind(
    BadReplyError, "sent an unreadable answer", "try again, and check the base URL"
)
BROKEN_OFF = FailureKind(BadReplyError, "stopped before its answer was complete", "try again")
EMPTY = FailureKind(BadReplyError, "sent an empty answer", "try again, or use another model")
USED_UP = FailureKind(
    BadReplyError, "used up its tokens before it wrote anything", "allow more output tokens"
)


def failure_of(error: Exception, connection: Connection, *, begun: bool = False) -> CallFailure:
    """Return the failure for a library's error. `begun`: part of the reply had arrived."""
    from pydantic_ai.exceptions import (
        ContentFilterError,
        ModelAPIError,
        ModelHTTPError,
        UserError,
    )

    if isinstance(error, ModelAPIError):
        kind = _kind(error, begun=begun)
        ours = kind.at(connection, _note(error, connection))
        if isinstance(ours, RateLimitError):
            ours.retry_after = error.retry_after
        if isinstance(ours, ContextOverflowError):
            ours.window = overflow_limit(str(error.body))
        passing = kind is _RATE or (
            isinstance(error, ModelHTTPError) and error.status_code in _SERVER_ERRORS
        )
        return CallFailure(ours, passing and not error.in_stream and not begun, error.retry_after)
    if isinstance(error, ContentFilterError):
        return CallFailure(DECLINED.at(connection))
    if isinstance(error, UserError | NotImplementedError):
        return CallFailure(_REJECTED.at(connection))
    if type(error).__name__ in _CREDENTIALS | _SETTINGS:
        return CallFailure(misfit(error, connection))
    return CallFailure(_UNREADABLE.at(connection))


def misfit(error: Exception, connection: Connection) -> GatewayError:
    """Return the error for a library's error that was raised before anything was sent."""
    from pydantic_ai.exceptions import UserError

    if type(error).__name__ in _CREDENTIALS:
        return _NO_CREDENTIALS.at(connection)
    # Only these are about a setting by name; the others quote values.
    reason = f": {error}" if isinstance(error, UserError) else ""
    return _MISFIT.at(connection, reason)


def _kind(error: ModelAPIError, *, begun: bool) -> FailureKind:
    """Return the first kind that fits, the most specific ones first."""
    from pydantic_ai import exceptions as theirs

    status = getattr(error, "status_code", None)
    # A request may be rejected because of its content, also with the status 403, or its length.
    is_rejected = isinstance(error, theirs.ModelRequestRejectedError) and not isinstance(
        error, theirs.ModelAuthenticationError
    )
    codes = {error.provider_error_code, error.provider_error_type}
    if codes & _FILTERS or (status == _FORBIDDEN and is_rejected):
        return DECLINED
    if (
        isinstance(error, theirs.ModelContextWindowExceededError)
        or status == _TOO_LARGE
        or (is_rejected and says_overflow(str(error.body)))
    ):
        return _TOO_LONG
    table: tuple[tuple[type[ModelAPIError], FailureKind], ...] = (
        (theirs.ModelAuthenticationError, _KEY),
        (theirs.ModelQuotaExceededError, _QUOTA),
        (theirs.ModelRateLimitError, _RATE),
        (theirs.ModelUnavailableError, _FAILING),
        (theirs.ModelServerError, _FAILING),
        (theirs.ModelRequestTimeout, _SILENT),
        (theirs.ModelTimeoutError, _SILENT),
        (theirs.ModelConnectionError, BROKEN_OFF if begun else _OUT_OF_REACH),
        (theirs.ModelNotFoundError, _ABSENT),
        (theirs.ModelHTTPError, _REJECTED),
        (theirs.ModelRequestRejectedError, _REJECTED),
    )
    unknown = BROKEN_OFF if begun else _UNREADABLE
    return next((kind for category, kind in table if isinstance(error, category)), unknown)


def _note(error: ModelAPIError, connection: Connection) -> str:
    """Return status and error code, if any, or the duration of a time-out, in parentheses."""
    from pydantic_ai.exceptions import ModelTimeoutError

    details: list[str] = []
    if isinstance(error, ModelTimeoutError):
        details.append(f"for {connection.timeout:g} s")
    status = getattr(error, "status_code", None)
    if status is not None:
        details.append(f"status {status}")
    code = error.provider_error_code or error.provider_error_type or ""
    key = connection.key.reveal() if connection.key is not None else None
    if _PLAIN_CODE.fullmatch(code) and not (key and key in code):
        details.append(code)
    return f" ({', '.join(details)})" if details else ""
