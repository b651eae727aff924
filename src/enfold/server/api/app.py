"""The API as a whole: its routers, its errors, and its description."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match
from starlette.types import Scope

from enfold.engine import Engine
from enfold.errors import EnfoldError
from enfold.server.access import Tokens
from enfold.server.api import catalog, compression, context, sessions, tokens, usage
from enfold.server.api.shapes import Failure
from enfold.server.failures import (
    Json,
    error_response,
    input_error,
    internal_error,
    status_response,
)
from enfold.server.feed import Feeds
from enfold.settings import ServerSettings

_POLICY = "default-src 'self' 'unsafe-inline'"
_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>enfold API</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
h2 { margin: 2rem 0 .5rem; text-transform: capitalize }
details { border-bottom: 1px solid #8884; padding: .4rem 0 }
summary { cursor: pointer }
code, pre { font: 14px/1.4 ui-monospace, monospace }
pre { overflow: auto; background: #8881; padding: .6rem; border-radius: .3rem }
b { display: inline-block; min-width: 4.5rem; font: bold 13px ui-monospace, monospace }
th, td { text-align: left; padding-right: 1rem; vertical-align: top; font-weight: normal }
</style>
<h1>enfold API</h1>
<p>The same as JSON: <a href="openapi.json">openapi.json</a>. An access token, where one is needed,
goes into the header <code>Authorization: Bearer …</code> or <code>x-enfold-token</code>.</p>
<main>Loading…</main>
<script>
const make = (name, text, ...children) => {
  const element = document.createElement(name)
  if (text) element.textContent = text
  element.append(...children)
  return element
}
const resolve = (api, schema) =>
  schema && schema.$ref ? api.components.schemas[schema.$ref.split("/").pop()] : schema
const shown = (api, media) => {
  const content = media && media.content && Object.values(media.content)[0]
  const schema = content && resolve(api, content.schema)
  if (!schema) return []
  const value = (schema.examples && schema.examples[0]) || schema
  return [make("pre", JSON.stringify(value, null, 2))]
}
const operation = (api, path, method, about) => {
  const rows = (about.parameters || []).map(each => make("tr", "",
    make("td", "", make("code", each.name)),
    make("td", each.in + (each.required ? ", required" : "")),
    make("td", each.description || "")))
  const good = Object.entries(about.responses).find(([status]) => status.startsWith("2"))
  return make("details", "",
    make("summary", "", make("b", method.toUpperCase()), make("code", path), " " + about.summary),
    make("p", about.description || ""),
    ...(rows.length ? [make("table", "", ...rows)] : []),
    ...(about.requestBody ? [make("p", "Body"), ...shown(api, about.requestBody)] : []),
    make("p", "Answers " + good[0]), ...shown(api, good[1]))
}
fetch("openapi.json").then(answer => answer.json()).then(api => {
  const nouns = {}
  for (const [path, methods] of Object.entries(api.paths))
    for (const [method, about] of Object.entries(methods))
      (nouns[about.tags ? about.tags[0] : "api"] ||= []).push(operation(api, path, method, about))
  document.querySelector("main").replaceChildren(
    ...Object.entries(nouns).flatMap(([noun, all]) => [make("h2", noun), ...all]))
})
</script>
</html>
"""


async def docs_page() -> HTMLResponse:
    """The page, which reads the description and lists every operation."""
    return HTMLResponse(
        _PAGE, headers={"content-security-policy": "default-src 'self' 'unsafe-inline'"}
    )


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
