"""A window: one page in one browser, and what it may see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from enfold.engine import Engine, Session
from enfold.engine.audit import write_down
from enfold.errors import EnfoldError, facts
from enfold.store import sessions
from enfold.store.access import AuditDraft

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
            await write_down(self.engine, entry)

    async def title(self, session: Session) -> str:
        """What the session is called."""
        record = await self.engine.store.read(sessions.get, session.key)
        return record.title or record.id


def path_of(session: str, view: str = "") -> str:
    """Where a session is shown; `view` is one of its pages, such as `history`."""
    place = f"/s/{quote(session, safe='')}"
    return f"{place}/{view}" if view else place
