"""Failures: an error as the API says it, always with the request's id."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from enfold.errors import EnfoldError, InputError, RateLimitError, TooManyError, facts
from enfold.jsontext import dumps

INTERNAL = "internal"
_STATUS_CODES = {404: "no_such_route", 405: "method_not_allowed"}


def request_id(scope: Scope) -> str:
    """The id that the request goes by."""
    return str(scope.get("state", {}).get("request_id", ""))


def error_response(error: EnfoldError, scope: Scope) -> Response:
    """What the caller is told of an error."""
    known = facts(error)
    headers = {}
    if isinstance(error, TooManyError | RateLimitError) and error.retry_after is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after))
    if known.status == 401:  # noqa: PLR2004 - the status that must say how to do better
        headers["www-authenticate"] = "Bearer"
    body = error_body(known.code, str(error), scope, retryable=known.retryable)
    return json_response(body, known.status, headers)


def status_response(status: int, reason: str, scope: Scope, headers: Any = None) -> Response:
    """The same for what is only known by its status."""
    body = error_body(_STATUS_CODES.get(status, f"http_{status}"), reason, scope)
    return json_response(body, status, dict(headers or {}))


def internal_error(scope: Scope) -> Response:
    """A mistake of ours. What it was is in the log, under the id."""
    reason = "something went wrong here; the log has more under this request id"
    return json_response(error_body(INTERNAL, reason, scope, retryable=True), 500)


def input_error(faults: Sequence[Any]) -> InputError:
    """What pydantic found wrong with a request, with the field that it found it in."""
    first = faults[0]
    where, *path = first["loc"]
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return InputError(f"{first['msg']}{more}", place=f"{where}{place}")


def error_body(
    code: str, message: str, scope: Scope, *, retryable: bool = False
) -> dict[str, dict[str, Any]]:
    """The one shape of every error."""
    return {
        "error": {
            "code": code,
            "message": message,
            "retryable": retryable,
            "request_id": request_id(scope),
        }
    }


class Json(JSONResponse):
    """JSON, written as strictly as everything else we write."""

    def render(self, content: Any) -> bytes:
        """The value as bytes."""
        return dumps(content)


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A response of JSON."""
    return Json(value, status, headers)
