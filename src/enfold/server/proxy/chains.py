"""Chains: requests that go on from a response at their provider, with what came before put back.

`previous_response_id` and references to items leave out what the provider has. Where all of it
passed through here, the request is made whole again: then it can be counted and compressed like any
other. What others may change at the provider, a conversation or a cache, is never sure to be known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from enfold import wire
from enfold.engine import Session
from enfold.engine.state import message_of
from enfold.jsontext import dumps, items, loads
from enfold.messages import Conversation
from enfold.records import ResponseItem, StoredMessage, StoredResponse
from enfold.server.proxy.bodies import RESPONSES, Body
from enfold.store import Database, Store, responses, sessions, tree
from enfold.text.words import is_storable
from enfold.wire.replies import Reply

PREVIOUS = "previous_response_id"
_NEVER_KNOWN = frozenset({"conversation", "cachedContent", "cached_content"})
"""Fields that name something which others may change, too."""
_FINISHED = frozenset({"completed", "incomplete"})
_LONGEST_REFERENCE = 400
"""Bytes. What is longer is no reference."""


@dataclass(frozen=True, slots=True)
class AtProvider:
    """What the provider has of a history already."""

    session: str
    """The session's name."""
    snapshot: str | None
    """The id of the one in whose view the provider has it. None: it has the whole history."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A request with all that it goes on from."""

    body: Body
    at_provider: AtProvider | None = None
    """None: the provider has nothing but what comes."""


async def complete(store: Store, namespace: str, body: Body) -> Whole | None:
    """The request with what it leaves out. None: some of that is not known in the namespace."""
    if any(_is_set(body, name) for name in body.fields.keys() & _NEVER_KNOWN):
        return None
    if body.form is not RESPONSES:
        return Whole(body)
    previous = body.value(PREVIOUS) if _is_set(body, PREVIOUS) else None
    named = {raw: id for raw in body.messages if (id := _reference(raw)) is not None}
    if previous is None and not named:
        return Whole(body)
    if previous is not None and not isinstance(previous, str):
        return None
    return await store.read(_complete, namespace, body, previous, named)


def has_a_view(provider_has: AtProvider | None) -> bool:
    """Whether the provider goes on from a summary, and not from the whole history."""
    return provider_has is not None and provider_has.snapshot is not None


def may_be_referred_to(body: Body) -> bool:
    """Whether a later request may refer to the answer to this one."""
    return body.form is RESPONSES and body.value("store") is not False


def can_be_gone_on_from(reply: Reply) -> bool:
    """Whether all that it says is known."""
    return reply.id is not None and reply.finish in _FINISHED


async def keep(
    store: Store, session: Session, reply: Reply, *, lead: Iterable[bytes], snapshot: str | None
) -> None:
    """Remember an answer to what the session ends with."""
    kept = tuple(ResponseItem(_id(item), dumps(item)) for item in reply.messages)
    before = b"[" + b",".join(lead) + b"]"
    await store.write(
        responses.put,
        StoredResponse(session.key, reply.id or "", session.tip or "", snapshot, kept, before),
    )


def _id(item: Mapping[str, Any]) -> str | None:
    id = item.get("id")
    return id if isinstance(id, str) and is_storable(id) else None


def _is_set(body: Body, name: str) -> bool:
    return body.fields.get(name, b"null") != b"null"


def _reference(raw: bytes) -> str | None:
    """The id of the item that is meant; None for an item that says something itself."""
    if len(raw) > _LONGEST_REFERENCE or (b"item_reference" not in raw and b'"role"' in raw):
        return None
    item = loads(raw)
    if not isinstance(item, dict) or not isinstance(item.get("id"), str):
        return None
    kind = item.get("type", "item_reference" if "role" not in item else None)
    return item["id"] if kind == "item_reference" else None


def _complete(
    db: Database, namespace: str, body: Body, previous: str | None, named: Mapping[bytes, str]
) -> Whole | None:
    found = {raw: responses.item(db, namespace, id) for raw, id in named.items()}
    sent = tuple(found.get(raw, raw) for raw in body.messages)
    known = tuple(raw for raw in sent if raw is not None)
    if len(known) < len(sent):
        return None
    if previous is None:
        return Whole(replace(body, messages=known))
    response = responses.find(db, namespace, previous)
    if response is None:
        return None
    before = (
        *items(response.lead),
        *_rendered(tree.path(db, response.session, response.tip)),
        *(item.content for item in response.items),
    )
    session = sessions.get(db, response.session).id
    whole = replace(body, messages=(*before, *known), elsewhere=(PREVIOUS,))
    return Whole(whole, AtProvider(session, response.snapshot))


def _rendered(rows: Iterable[StoredMessage]) -> Iterator[bytes]:
    """The messages as items; a session may have begun in another dialect."""
    dialect = wire.get(RESPONSES.dialect)
    for row in rows:
        if row.dialect == RESPONSES.dialect:
            yield row.body
        else:
            said = Conversation((message_of(row),), dialect=row.dialect)
            yield from map(dumps, dialect.render(said))
