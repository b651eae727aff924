"""A window: one page in one browser, the data it may read, and how it shows errors."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, unquote

from nicegui import ui

from enfold.engine import Engine, Session
from enfold.errors import AccessError, EnfoldError, facts
from enfold.records import AuditDraft, SessionRecord
from enfold.text.words import is_storable

_SUCCESS = 200
NAMESPACE_COOKIE = "enfold-namespace"
"""The cookie with the namespace that the owner looks into."""


class Visitor(Protocol):
    """The sender of a request, as the server identified it."""

    @property
    def name(self) -> str:
        """The name of the access token; empty on a server without tokens."""

    @property
    def namespace(self) -> str:
        """The namespace of the visitor's sessions."""

    @property
    def is_owner(self) -> bool:
        """True if the visitor may change settings of the whole server."""


@dataclass(frozen=True, slots=True)
class Window:
    """The engine and the visitor of one page."""

    engine: Engine
    visitor: Visitor
    looked_into: str = ""
    """The namespace that the owner looks into. Empty for the visitor's."""

    @property
    def namespace(self) -> str:
        """The namespace of the sessions that are shown."""
        return self.looked_into or self.visitor.namespace

    async def session(self, id: str) -> Session:
        """Return a session of the namespace; raise `NotFoundError` if it does not exist."""
        return await self.engine.find(id, namespace=self.namespace)

    async def sessions(
        self, limit: int, *, after: SessionRecord | None = None
    ) -> list[SessionRecord]:
        """Return the sessions of the namespace, most recently used first."""
        return await self.engine.sessions(namespace=self.namespace, limit=limit, after=after)

    @asynccontextmanager
    async def audited(self, action: str, session: str | None = None) -> AsyncIterator[None]:
        """Record an action of the visitor in the audit log, as the server does for its API."""
        status = 0
        try:
            yield
            status = _SUCCESS
        except EnfoldError as error:
            status = facts(error).status
            raise
        finally:
            entry = AuditDraft(
                actor=self.visitor.name,
                namespace=self.namespace,
                action=f"UI {action}",
                status=status,
                request_id="",
                session=session,
            )
            await self.engine.access.log(entry)

    @asynccontextmanager
    async def owner_action(self, action: str) -> AsyncIterator[None]:
        """Record an action that changes the whole server; raise unless the visitor may do it."""
        async with self.audited(action):
            if not self.visitor.is_owner:
                raise AccessError(
                    f"the token {self.visitor.name!r} may not change settings of the whole "
                    "server; sign in with the server's first token"
                )
            yield

    async def title(self, session: Session) -> str:
        """Return the session's title, or its id if it has none."""
        record = await session.record()
        return record.title or record.id


def namespace_in(cookies: Mapping[str, str], visitor: Visitor) -> str:
    """Return the namespace that the owner looks into; empty for other visitors."""
    name = unquote(cookies.get(NAMESPACE_COOKIE, "")) if visitor.is_owner else ""
    return name if is_storable(name) else ""


def look_into(namespace: str) -> None:
    """Show the sessions of a namespace from now on; an empty one is the visitor's."""
    # A cookie, so that every page of this browser shows the same namespace.
    cookie = f"{NAMESPACE_COOKIE}={quote(namespace, safe='')};path=/;samesite=strict"
    ui.run_javascript(f"document.cookie={json.dumps(cookie)};location.href='/'")


def path_of(session: str, view: str = "") -> str:
    """Return the path of a session's page; `view` is a page below it, such as `history`."""
    place = f"/s/{quote(session, safe='')}"
    return f"{place}/{view}" if view else place


def notify_error(error: Exception) -> None:
    """Show an error at the bottom of the page. NiceGUI calls this for exceptions of handlers.

    Only our own errors are shown in full: the text of another exception may contain anything.
    """
    is_ours = isinstance(error, EnfoldError)
    notify_failure(str(error) if is_ours else "Unexpected error. See the server log.")


def notify_failure(text: str) -> None:
    """Show the text of an error at the bottom of the page."""
    ui.notify(
        text,
        type="negative",
        position="top",
        timeout=12_000,
        actions=[{"label": "Dismiss", "color": "white"}],
    )


def show_error(error: EnfoldError) -> None:
    """Show an error in place of the page's content."""
    with ui.element("section").classes("ef-empty").props('role="alert"'):
        ui.icon("error_outline").classes("ef-empty-icon").props('aria-hidden="true"')
        ui.label(str(error)).classes("ef-wrap")
        ui.link("Back to conversations", "/")


def redact_log_record(record: logging.LogRecord) -> bool:
    """Drop our own errors from the log, which were shown; reduce others to type and place."""
    if not record.exc_info or record.exc_info[1] is None:
        return True
    error = record.exc_info[1]
    if isinstance(error, EnfoldError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else "?"
    record.msg, record.args = "unexpected error: %s", (f"{type(error).__name__} at {place}",)
    record.exc_info = None
    return True
