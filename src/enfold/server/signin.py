"""Signing in: a browser's user gives the access token once, and a cookie remembers it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from urllib.parse import parse_qs, quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Scope

from enfold.errors import TokenError, TooLargeError, TooManyError
from enfold.server.access import COOKIE, Tokens

_DAYS = 30
_SECONDS = _DAYS * 24 * 3600
_LONGEST = 8_192
"""Bytes of a form; a token has some forty."""
_SEE_OTHER = 303
_UNAUTHORIZED = 401
_TOO_MANY = 429
_ONLY_STYLE = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'"


class SignIn:
    """The page that asks for a token, and what it sends."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    def routes(self) -> Sequence[BaseRoute]:
        """Where it stands in an application."""
        return (
            Route("/signin", self._form, methods=["GET"]),
            Route("/signin", self._sign_in, methods=["POST"]),
            Route("/signout", self._sign_out, methods=["POST"]),
        )

    def is_for(self, scope: Scope) -> bool:
        """Whether the request is a browser's, for a page."""
        wanted = Headers(scope=scope).get("accept", "")
        return scope["type"] == "http" and scope["method"] == "GET" and "text/html" in wanted

    def page(self, scope: Scope) -> ASGIApp:
        """The form in the place of the page that was asked for."""
        query = scope.get("query_string", b"").decode("latin-1")
        return _page(quote(scope["path"]) + (f"?{query}" if query else ""))

    async def _form(self, _request: Request) -> Response:
        return _page("/")

    async def _sign_in(self, request: Request) -> Response:
        fields = parse_qs((await _body(request)).decode("utf-8", "replace"))
        token = fields.get("token", [""])[0].strip()
        onwards = _here(fields.get("onwards", ["/"])[0])
        try:
            await self._tokens.caller(token, request.scope)
        except TokenError as error:
            return _page(onwards, str(error))
        except TooManyError as error:
            return _page(onwards, str(error), _TOO_MANY)
        answer = RedirectResponse(onwards, _SEE_OTHER)
        answer.set_cookie(
            COOKIE,
            quote(token, safe=""),
            max_age=_SECONDS,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return answer

    async def _sign_out(self, _request: Request) -> Response:
        answer = RedirectResponse("/signin", _SEE_OTHER)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer


async def _body(request: Request) -> bytes:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LONGEST:
            raise TooLargeError(f"the form is larger than {_LONGEST:,} bytes, which is the most")
    return body


def _here(path: str) -> str:
    """The path, if it is one of this server's: nobody is sent elsewhere after signing in."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\"))
    return path if is_ours and path.isprintable() else "/"


def _page(onwards: str, fault: str = "", status: int = _UNAUTHORIZED) -> Response:
    template = Template(files(__package__).joinpath("signin.html").read_text("utf-8"))
    text = template.substitute(onwards=escape(onwards), fault=escape(fault))
    headers = {"content-security-policy": _ONLY_STYLE, "cache-control": "no-store"}
    return HTMLResponse(text, status, headers)
