"""The API as a whole: its routers, its errors, and its description."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from enfold.engine import Engine
from enfold.errors import EnfoldError
from enfold.server.access import Tokens
from enfold.server.api import (
    activity,
    compression,
    context,
    events,
    messages,
    models,
    presets,
    profiles,
    search,
    sessions,
    settings,
    summaries,
    tokens,
    usage,
)
from enfold.server.api.page import docs_page
from enfold.server.api.shapes import Failure
from enfold.server.failures import (
    Json,
    error_response,
    input_error,
    internal_error,
    status_response,
)
from enfold.server.feed import Feeds
from enfold.settings import Serving

ROUTERS = (
    sessions.router,
    messages.router,
    context.router,
    summaries.router,
    search.router,
    models.router,
    profiles.router,
    presets.router,
    settings.router,
    usage.router,
    activity.router,
    events.router,
    compression.router,
    tokens.router,
)
BODY_LIMIT = Serving().body_limit
_METHOD_NOT_ALLOWED = 405
_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Failure, "description": "Something about the request; the code says what."},
    "5XX": {"model": Failure, "description": "Something here, or a model that was asked."},
}


def create_api(
    engine: Engine, feeds: Feeds, access: Tokens, *, body_limit: int = BODY_LIMIT
) -> FastAPI:
    """The API over an engine; `body_limit` is what a body may have once it is unpacked."""
    api = FastAPI(
        title="enfold",
        version=_version(),
        summary="Long conversations inside the model's window; nothing is lost.",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=_operation_id,
        responses=_ERRORS,
        default_response_class=Json,
        exception_handlers={
            EnfoldError: _on_error,
            RequestValidationError: _on_bad_request,
            HTTPException: _on_status,
            Exception: _on_mistake,
        },
    )
    api.state.engine = engine
    api.state.feeds = feeds
    api.state.tokens = access
    api.state.body_limit = body_limit
    for router in ROUTERS:
        api.include_router(router)
    api.add_api_route("/docs", docs_page, include_in_schema=False)
    return api


def _operation_id(route: APIRoute) -> str:
    """`sessions.list`: the noun and the function's name."""
    noun = str(route.tags[0]) if route.tags else "api"
    return f"{noun}.{route.name}"


async def _on_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, EnfoldError):
        raise error
    return error_response(error, request.scope)


async def _on_bad_request(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    return error_response(input_error(error.errors()), request.scope)


async def _on_status(request: Request, error: Exception) -> Response:
    """What the framework found out; an error of ours that it wrapped is told as ours."""
    if isinstance(error.__cause__, EnfoldError):
        return error_response(error.__cause__, request.scope)
    if not isinstance(error, HTTPException):
        raise error
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    if error.status_code == _METHOD_NOT_ALLOWED:
        headers["allow"] = ", ".join(_methods(request.scope)) or headers.get("allow", "")
    return status_response(error.status_code, str(error.detail), request.scope, headers)


def _methods(scope: Scope) -> list[str]:
    """Every method that the path has; the framework names those of one route."""
    routes = (route for router in ROUTERS for route in router.routes)
    there = (
        route.methods or set[str]()
        for route in routes
        if isinstance(route, APIRoute) and route.matches(scope)[0] is Match.PARTIAL
    )
    return sorted(set[str]().union(*there))


async def _on_mistake(request: Request, _: Exception) -> Response:
    """It is raised again after this, and logged further out."""
    return internal_error(request.scope)


def _version() -> str:
    try:
        return version("enfold")
    except PackageNotFoundError:
        return "0"
