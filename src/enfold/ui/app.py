"""The app: the web UI's pages, mounted on a server's application while it is open."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from fastapi import FastAPI
from nicegui import app as pages_app
from nicegui import ui

from enfold.engine import Engine
from enfold.errors import EnfoldError
from enfold.ui import frame as theme
from enfold.ui import window as failures
from enfold.ui.chat import chat
from enfold.ui.compression.changes import changes
from enfold.ui.dashboard import dashboard
from enfold.ui.frame import frame as frame_frame
from enfold.ui.history import history
from enfold.ui.settings import settings
from enfold.ui.window import Visitor, Window

Page: TypeAlias = Callable[..., Awaitable[None]]

PAGES: Mapping[str, Page] = {
    "/": chat,
    "/s/{session}": chat,
    "/s/{session}/history": history,
    "/s/{session}/changes/{snapshot}": changes,
    "/dashboard": dashboard,
    "/settings": settings,
    "/settings/{section}": settings,
}


VisitorOf = Callable[[Mapping[str, Any]], Visitor]
"""Who sent a request, by its ASGI scope."""

_RECONNECT_SECONDS = 60.0
"""How long a window may be out of touch, as on a train, before it has to be built anew."""
_BUILD_SECONDS = 20.0


@asynccontextmanager
async def open_ui(engine: Engine, host: FastAPI, visitor_of: VisitorOf) -> AsyncIterator[None]:
    """Serve the pages at the host application's root for as long as this lasts."""
    mount(engine, host, visitor_of)
    logging.getLogger("nicegui").addFilter(failures.without_words)
    async with host.router.lifespan_context(host):
        yield


def mount(engine: Engine, host: FastAPI, visitor_of: VisitorOf) -> None:
    """Put every page of the table on the host application."""
    for path, build in PAGES.items():
        ui.page(path, response_timeout=_BUILD_SECONDS)(_page(build, engine, visitor_of))
    # Only sockets: a window that polls would hold up the server's end, and any origin may poll.
    pages_app.config.socket_io_js_transports = ["websocket"]
    theme.install()
    ui.run_with(
        host,
        title="enfold",
        favicon=theme.ICON,
        dark=None,
        reconnect_timeout=_RECONNECT_SECONDS,
        show_welcome_message=False,
        tailwind=False,
    )


def _page(build: Page, engine: Engine, visitor_of: VisitorOf) -> Callable[[], Any]:
    async def page() -> None:
        request = ui.context.client.request
        window = Window(engine, visitor_of(request.scope))
        ui.on_exception(failures.show)
        try:
            await build(window, **_names(request.path_params))
        except EnfoldError as error:
            async with frame_frame(window, "This did not work"):
                failures.explain(error)

    return page


def _names(segments: Mapping[str, str]) -> dict[str, str]:
    """What a path names; the server has put a zero where a name has a slash in it."""
    return {key: value.replace("\0", "/") for key, value in segments.items()}
