"""OpenAI Agents SDK: a session whose history is stored whole and sent as its view.

    async with enfold.open("sqlite:///chats.db") as engine:
        session = AgentSession(await engine.session("user-42", model="openai:gpt-4o"))
        result = await Runner.run(agent, "Where were we?", session=session)

It needs nothing of the SDK but its shapes, so it loads without it. The SDK reads a session when a
run begins; what the tools of that run say is added to it by the SDK alone until the next one.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

from enfold import wire
from enfold.engine import Session
from enfold.engine.state import message_of
from enfold.messages import Conversation, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents import TResponseInputItem
    from agents.memory import SessionSettings

_DIALECT = wire.RESPONSES


class AgentSession:
    """A session of the SDK over one of enfold's; `settings` hold for what this one reads.

    What the SDK takes back or clears is no longer sent. It stays in the store, on a branch of its
    own, until the session is deleted there.
    """

    def __init__(self, session: Session, **settings: Any) -> None:
        self.session_id = session.id
        self.session_settings: SessionSettings | None = None
        self._session = session
        self._settings = settings

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the view: all messages, or a summary and the newest ones if they do not fit.

        With a `limit` it is the newest items just as they were said, which is what the SDK compares
        with what it wrote. Nothing is compressed then, and how much that is lies with the limit.
        """
        requested = (
            self.session_settings.limit if limit is None and self.session_settings else limit
        )
        if requested is not None:
            rows = await self._session.history(limit=max(0, requested))
            return _items([message_of(row) for row in rows])
        prepared = await self._session.prepare(**self._settings)
        return _items(prepared.view.messages_for(_DIALECT))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items after the last."""
        await self._session.append(*cast("list[dict[str, Any]]", items), dialect=_DIALECT)

    async def pop_item(self) -> TResponseInputItem | None:
        """Take back the last item; None if there is none."""
        last = await self._session.step_back()
        return None if last is None else _items([last])[-1]

    async def clear_session(self) -> None:
        """Start an empty branch; the earlier items stay in the store."""
        await self._session.switch(None)


def _items(messages: Sequence[Message]) -> list[TResponseInputItem]:
    """Copies, because decoded messages are shared and the SDK may write into what it gets."""
    rendered = wire.render(Conversation(tuple(messages), _DIALECT), _DIALECT)
    return cast("list[TResponseInputItem]", deepcopy(rendered))
