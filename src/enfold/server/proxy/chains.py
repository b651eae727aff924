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
from enfold.jsontext import dumps, items
from enfold.messages import Conversation
from enfold.records import ResponseItem, StoredMessage, StoredResponse
from enfold.server.proxy.bodies import Body
from enfold.store import Database, Store, responses, sessions, tree
from enfold.text.words import is_storable
from enfold.wire.replies import Reply

_FINISHED = frozenset({"completed", "incomplete"})


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
    if any(_is_set(body, name) for name in body.form.external_history_keys):
        return None
    stored = body.form.stored_responses
    if stored is None:
        return Whole(body)
    previous = body.value(stored.previous_key) if _is_set(body, stored.previous_key) else None
    named = {raw: id for raw in body.messages if (id := stored.referenced_item(raw)) is not None}
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
    return body.form.stored_responses is not None and body.value("store") is not False


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
        *_rendered(tree.path(db, response.session, response.tip), body.form.dialect),
        *(item.content for item in response.items),
    )
    session = sessions.get(db, response.session).id
    stored = body.form.stored_responses
    elsewhere = () if stored is None else (stored.previous_key,)
    whole = replace(body, messages=(*before, *known), elsewhere=elsewhere)
    return Whole(whole, AtProvider(session, response.snapshot))


def _rendered(rows: Iterable[StoredMessage], dialect: str) -> Iterator[bytes]:
    """The messages as items; a session may have begun in another dialect."""
    for row in rows:
        if row.dialect == dialect:
            yield row.body
        else:
            message = Conversation((message_of(row),), dialect=row.dialect)
            yield from map(dumps, wire.render(message, dialect))
