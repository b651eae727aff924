"""Front: which requests are the web UI's, and what its pages may do in a browser."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from enfold.server.segments import Segments

_OF_THE_API = ("/api", "/docs", "/openapi.json")
SOCKET = "/_nicegui_ws/"
"""Where windows connect."""

_HEADERS = {
    # Nothing is loaded from elsewhere, whatever a message says. The library's own pages have their
    # scripts in them and make templates into code, hence the two exceptions.
    "content-security-policy": "default-src 'self'; "
    "script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws: wss:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


class Front:
    """Gives the API what is its own, and the rest to the web UI."""

    def __init__(self, api: ASGIApp, ui: ASGIApp) -> None:
        self._api = api
        self._ui = Segments(ui)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await self._ui(scope, receive, send)
        elif _is_of_the_api(scope["path"]) or scope["path"].startswith(SOCKET):
            # A window that asks again and again, for want of a socket, would be let in by any
            # page's origin and would hold up the server's end.
            await self._api(scope, receive, send)
        else:
            await self._ui(scope, receive, _with_headers(send))


def _is_of_the_api(path: str) -> bool:
    return path in _OF_THE_API or path.startswith("/api/")


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending
