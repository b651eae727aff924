"""The application: the table of pages, and mounting them on a server's application."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias

from fastapi import FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from nicegui import Client, ui
from nicegui import app as nicegui_app

from enfold.engine import Engine
from enfold.errors import EnfoldError, NotFoundError
from enfold.ui.chat.page import chat
from enfold.ui.compression.changes import changes
from enfold.ui.dashboard import dashboard
from enfold.ui.frame import ICON, frame, install_theme
from enfold.ui.history import history
from enfold.ui.settings.page import settings
from enfold.ui.setup import setup
from enfold.ui.window import (
    Visitor,
    Window,
    namespace_in,
    notify_error,
    redact_log_record,
    show_error,
)

PageBuilder: TypeAlias = Callable[..., Awaitable[None]]

PAGES: Mapping[str, PageBuilder] = {
    "/": chat,
    "/s/{session}": chat,
    "/s/{session}/history": history,
    "/s/{session}/changes/{snapshot}": changes,
    "/dashboard": dashboard,
    "/settings": settings,
    "/settings/{section}": settings,
    "/setup": setup,
}

VisitorOf: TypeAlias = Callable[[Mapping[str, Any]], Visitor]
"""Returns the sender of a request, given the request's ASGI scope."""

_RECONNECT_SECONDS = 60.0
"""A window that is offline for longer is rebuilt."""
_BUILD_SECONDS = 20.0


@asynccontextmanager
async def open_ui(engine: Engine, host: FastAPI, visitor_of: VisitorOf) -> AsyncIterator[None]:
    """Serve the pages at the root of the host application while the context is open."""
    mount(engine, host, visitor_of)
    logging.getLogger("nicegui").addFilter(redact_log_record)
    async with host.router.lifespan_context(host):
        yield


def mount(engine: Engine, host: FastAPI, visitor_of: VisitorOf) -> None:
    """Add every page of the table to the host application."""
    for path, build in PAGES.items():
        ui.page(path, response_timeout=_BUILD_SECONDS)(_page(build, engine, visitor_of))
    _add_error_pages(engine, visitor_of)
    # WebSockets only: a polling window would delay the shutdown, and any origin may poll.
    nicegui_app.config.socket_io_js_transports = ["websocket"]
    # Screen readers announce this bar on background requests, but it has no name.
    nicegui_app.config.quasar_config["loadingBar"]["skipHijack"] = True
    install_theme()
    ui.run_with(
        host,
        title="enfold",
        favicon=ICON,
        dark=None,
        reconnect_timeout=_RECONNECT_SECONDS,
        show_welcome_message=False,
        tailwind=False,
    )


def _add_error_pages(engine: Engine, visitor_of: VisitorOf) -> None:
    """Show our own pages for addresses that do not exist and for unexpected errors."""

    async def show(request: Request, error: Any, *, is_missing: bool) -> Response:
        endpoint, is_page = request.scope.get("endpoint"), request.scope.get("nicegui_page_path")
        if not is_page and is_missing and endpoint not in (None, nicegui_app):
            return await http_exception_handler(request, error)
        if not is_page and not is_missing:
            raise error
        text = (
            f"There is no page {request.url.path!r}."
            if is_missing
            else "Unexpected error. The server log has more."
        )
        visitor = visitor_of(request.scope)
        with Client(ui.page(""), request=request) as client:
            async with frame(Window(engine, visitor), "Page not found" if is_missing else "Error"):
                show_error(NotFoundError(text))
        return client.build_response(request, 404 if is_missing else 500)

    nicegui_app.add_exception_handler(404, partial(show, is_missing=True))
    nicegui_app.add_exception_handler(Exception, partial(show, is_missing=False))


def _page(build: PageBuilder, engine: Engine, visitor_of: VisitorOf) -> Callable[[], Any]:
    async def page() -> None:
        request = ui.context.client.request
        visitor = visitor_of(request.scope)
        window = Window(engine, visitor, namespace_in(request.cookies, visitor))
        ui.on_exception(notify_error)
        # The server replaces a slash inside a path segment by a zero byte.
        names = {key: value.replace("\0", "/") for key, value in request.path_params.items()}
        try:
            await build(window, **names)
        except EnfoldError as error:
            async with frame(window, "Error"):
                show_error(error)

    return page
