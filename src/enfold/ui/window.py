"""A window: one page in one browser, and what it may see."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from nicegui import ui

from enfold.engine import Engine, Session
from enfold.errors import EnfoldError, facts
from enfold.records import AuditDraft
from enfold.store import sessions

_DONE = 200


class Visitor(Protocol):
    """Whoever opened the page, as the server knows them."""

    @property
    def name(self) -> str:
        """Their access token's; empty on this machine, where none is needed."""

    @property
    def namespace(self) -> str:
        """Where their sessions are."""

    @property
    def is_owner(self) -> bool:
        """Whether they may change what holds for everybody."""


@dataclass(frozen=True, slots=True)
class Window:
    """What a page works with."""

    engine: Engine
    visitor: Visitor

    @property
    def namespace(self) -> str:
        """Where the visitor's sessions are."""
        return self.visitor.namespace

    async def session(self, id: str) -> Session:
        """One of the visitor's sessions; `NotFoundError` if there is none of that name."""
        return await self.engine.find(id, namespace=self.namespace)

    @asynccontextmanager
    async def doing(self, action: str, session: str | None = None) -> AsyncIterator[None]:
        """Write down what the visitor does in here, as the server does for its API."""
        status = 0
        try:
            yield
            status = _DONE
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

    async def title(self, session: Session) -> str:
        """What the session is called."""
        record = await self.engine.store.read(sessions.get, session.key)
        return record.title or record.id


def path_of(session: str, view: str = "") -> str:
    """Where a session is shown; `view` is one of its pages, such as `history`."""
    place = f"/s/{quote(session, safe='')}"
    return f"{place}/{view}" if view else place


def show(error: Exception) -> None:
    """Say it in a corner of the page. Words of ours can be read; a mistake's might hold anything.

    This is what happens to whatever a handler on a page raises.
    """
    words = (
        str(error) if isinstance(error, EnfoldError) else "Something went wrong here; see the log."
    )
    tell(words)


def tell(words: str) -> None:
    """Say in a corner of the page what is wrong."""
    ui.notify(
        words,
        type="negative",
        position="bottom",
        timeout=12_000,
        actions=[{"label": "Dismiss", "color": "white"}],
    )


def explain(error: EnfoldError) -> None:
    """Say it in the place of what should have been on the page."""
    with ui.element("section").classes("ef-empty").props('role="alert"'):
        ui.icon("error_outline").classes("ef-empty-icon").props('aria-hidden="true"')
        ui.label(str(error)).classes("ef-wrap")
        ui.link("Back to the conversations", "/")


def without_words(record: logging.LogRecord) -> bool:
    """For the log: what is ours was shown already; of a mistake, its kind and its place."""
    if not record.exc_info or record.exc_info[1] is None:
        return True
    error = record.exc_info[1]
    if isinstance(error, EnfoldError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else "?"
    record.msg, record.args = "a mistake of ours: %s", (f"{type(error).__name__} at {place}",)
    record.exc_info = None
    return True
