"""Responses: model responses that later requests continue from by id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from enfold.records import Exchange, SessionKey, StoredMessage, StoredResponse
from enfold.store import responses, sessions, tree
from enfold.store.database import Database
from enfold.store.store import Store


@dataclass(frozen=True, slots=True)
class ResponseChain:
    """A stored response with the messages before it, and items that a request names."""

    items: Mapping[str, bytes]
    """The items that were found, by id."""
    response: StoredResponse | None = None
    messages: tuple[StoredMessage, ...] = ()
    """The branch that the response answers."""
    session: str | None = None
    """The id of the response's session."""


class Responses:
    """Model responses and exchanges of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put(self, response: StoredResponse) -> None:
        """Store a response. One that is stored already stays as it is."""
        await self._store.write(responses.put, response)

    async def put_exchange(self, session: SessionKey, exchange: Exchange) -> None:
        """Store an exchange, in place of one with the same visible part at the same message."""
        await self._store.write(responses.put_exchange, session, exchange)

    async def chain(
        self, namespace: str, previous: str | None, item_ids: Iterable[str]
    ) -> ResponseChain:
        """Return a response by its id, and items by theirs, read in one transaction."""
        return await self._store.read(_read_chain, namespace, previous, tuple(item_ids))


def _read_chain(
    db: Database, namespace: str, previous: str | None, item_ids: tuple[str, ...]
) -> ResponseChain:
    found = {id: responses.item(db, namespace, id) for id in item_ids}
    items = {id: content for id, content in found.items() if content is not None}
    response = responses.find(db, namespace, previous) if previous is not None else None
    if response is None:
        return ResponseChain(items)
    return ResponseChain(
        items,
        response,
        tree.path(db, response.session, response.tip),
        sessions.get(db, response.session).id,
    )
