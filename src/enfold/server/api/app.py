"""The API application: routers, error responses and documentation."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from enfold.engine import Engine
from enfold.errors import EnfoldError
from enfold.server.access import Tokens
from enfold.server.api import (
    catalog,
    compression,
    context,
    sessions,
    tokens,
    usage,
)
from enfold.server.api.shapes import API_PARTS, ApiParts, ErrorBody, StrictRoute
from enfold.server.failures import (
    Json,
    error_response,
    input_error,
    internal_error,
    status_response,
)
from enfold.server.feed import Feeds
from enfold.settings import ServerSettings, installed_version

ROUTERS = (
    sessions.router,
    sessions.messages_router,
    context.router,
    context.summaries_router,
    sessions.search_router,
    catalog.router,
    catalog.profiles_router,
    catalog.presets_router,
    catalog.settings_router,
    usage.router,
    context.events_router,
    compression.router,
    tokens.router,
)
BODY_LIMIT = ServerSettings().body_limit
_CLIENT_CLOSED_REQUEST = 499
"""The status that web servers log for it; HTTP has none."""
_METHOD_NOT_ALLOWED = 405
_DOCS_POLICY = "default-src 'self' 'unsafe-inline'"
_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorBody, "description": "The request cannot be answered; see the code."},
    "5XX": {"model": ErrorBody, "description": "The server or a provider failed."},
}


def create_api(
    engine: Engine, feeds: Feeds, access: Tokens, *, body_limit: int = BODY_LIMIT
) -> ASGIApp:
    """Return the API over an engine; `body_limit` is the most bytes of a decompressed body."""
    parts, routes = ApiParts(engine, feeds, access, body_limit), api_routes()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        scope[API_PARTS] = parts
        await routes(scope, receive, send)

    return answer


@cache
def api_routes() -> FastAPI:
    """Return all routes.

    They are slow to make and the same for every engine, which a request finds in its scope.
    """
    api = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        default_response_class=Json,
        exception_handlers=dict.fromkeys(
            (EnfoldError, RequestValidationError, HTTPException, ClientDisconnect, Exception),
            _on_error,
        ),
    )
    for router in ROUTERS:
        api.include_router(router)
    for path in ("/docs", "/api"):
        api.add_api_route(path, docs_page)
    api.add_api_route("/openapi.json", description)
    return api


@cache
def describe_api() -> dict[str, Any]:
    """Return the OpenAPI description."""
    api = FastAPI(
        title="enfold",
        version=installed_version(),
        summary="Long conversations inside the model's window; nothing is lost.",
        generate_unique_id_function=lambda route: f"{(route.tags or ['api'])[0]}.{route.name}",
        responses=_ERRORS,
    )
    for router in ROUTERS:
        described = [
            each.described() if isinstance(each, StrictRoute) else each for each in router.routes
        ]
        api.include_router(APIRouter(routes=described))
    return api.openapi()


async def description() -> Response:
    """Return the OpenAPI description. It is made in a thread, because that takes a moment."""
    return Json(await asyncio.to_thread(describe_api))


async def docs_page() -> HTMLResponse:
    """Return the page that lists every operation of the OpenAPI description."""
    text = files(__package__).joinpath("docs.html").read_text("utf-8")
    return HTMLResponse(text, headers={"content-security-policy": _DOCS_POLICY})


async def _on_error(request: Request, error: Exception) -> Response:
    """Answer an error. The framework raises an unexpected one again, and `Tracing` logs it."""
    match error:
        case EnfoldError():
            return error_response(error, request.scope)
        case HTTPException(__cause__=EnfoldError() as cause):
            return error_response(cause, request.scope)
        case RequestValidationError():
            return error_response(input_error(error.errors()), request.scope)
        case ClientDisconnect():
            return Response(status_code=_CLIENT_CLOSED_REQUEST)
        case HTTPException():
            headers = {name.lower(): value for name, value in (error.headers or {}).items()}
            if error.status_code == _METHOD_NOT_ALLOWED:
                headers["allow"] = ", ".join(_methods(request.scope)) or headers.get("allow", "")
            return status_response(error.status_code, str(error.detail), request.scope, headers)
    return internal_error(request.scope)


def _methods(scope: Scope) -> list[str]:
    """Return all methods of the path; the framework names those of one route only."""
    methods: set[str] = set()
    for route in (route for router in ROUTERS for route in router.routes):
        if isinstance(route, APIRoute) and route.matches(scope)[0] is Match.PARTIAL:
            methods |= route.methods or set()
    return sorted(methods)
