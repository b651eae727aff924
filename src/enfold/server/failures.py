"""Error responses of the API, always with the request's id."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from starlette.responses import JSONResponse, Response
from starlette.types import Scope

from enfold.errors import EnfoldError, InputError, RateLimitError, TooManyError, facts
from enfold.jsontext import dumps

_STATUS_CODES = {404: "no_such_route", 405: "method_not_allowed"}
_UNAUTHORIZED = 401


def request_id(scope: Scope) -> str:
    """Return the request's id."""
    return str(scope.get("state", {}).get("request_id", ""))


def error_response(error: EnfoldError, scope: Scope) -> Response:
    """Return the response for an error."""
    row = facts(error)
    headers = {}
    if (seconds := retry_after(error)) is not None:
        headers["retry-after"] = seconds
    if row.status == _UNAUTHORIZED:
        headers["www-authenticate"] = "Bearer"
    body = _body(row.code, str(error), scope, retryable=row.retryable)
    return Json(body, row.status, headers)


def retry_after(error: EnfoldError) -> str | None:
    """Return the seconds after which the request may be repeated, if the error has them."""
    if isinstance(error, TooManyError | RateLimitError) and error.retry_after is not None:
        return str(math.ceil(error.retry_after))
    return None


def status_response(status: int, reason: str, scope: Scope, headers: Any = None) -> Response:
    """Return the response for an error that has only an HTTP status."""
    body = _body(_STATUS_CODES.get(status, f"http_{status}"), reason, scope)
    return Json(body, status, dict(headers or {}))


def internal_error(scope: Scope) -> Response:
    """Return the response for an unexpected error. The log has its details under the id."""
    reason = "internal error; the log has the details under this request id"
    return Json(_body("internal", reason, scope, retryable=True), 500)


def input_error(faults: Sequence[Any]) -> InputError:
    """Return the first of pydantic's validation errors, with the field's place."""
    first = faults[0]
    where, *path = first["loc"]
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return InputError(f"{first['msg']}{more}", place=f"{where}{place}")


def _body(code: str, message: str, scope: Scope, *, retryable: bool = False) -> dict[str, Any]:
    fault = {"code": code, "message": message, "retryable": retryable}
    return {"error": {**fault, "request_id": request_id(scope)}}


class Json(JSONResponse):
    """A JSON response, written with `enfold.jsontext`."""

    def render(self, content: Any) -> bytes:
        """Return the value as bytes."""
        return dumps(content)
