"""Chains: requests that continue from a response, completed with the messages that they leave out.

`previous_response_id` and references to items leave out what the provider has. If all of it passed
through this proxy, the request is completed: then it can be counted and compressed like any other.
A `conversation` that the provider stores is never known for certain, because other clients can
change it there: its requests are forwarded as they came, and recorded one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from enfold import wire
from enfold.engine import Session
from enfold.engine.recognition import Responses
from enfold.engine.state import message_of
from enfold.jsontext import dumps, items
from enfold.messages import Conversation
from enfold.records import ResponseItem, StoredMessage, StoredResponse
from enfold.server.proxy.bodies import RequestBody
from enfold.text.words import is_storable
from enfold.wire.replies import Reply

_COMPLETE_FINISHES = frozenset({"completed", "incomplete"})


@dataclass(frozen=True, slots=True)
class CompletedRequest:
    """A request with all messages that it continues from."""

    body: RequestBody
    session: str | None = None
    """The session of the response that it continues from. None: it does not continue from one."""
    provider_has_view: bool = False
    """True if the provider has a compressed view of the history before, not the whole history."""


async def complete_request(
    responses: Responses, namespace: str, body: RequestBody
) -> CompletedRequest | None:
    """Add the messages that the request leaves out; None if they are not all stored."""
    if any(_is_set(body, name) for name in body.wire.external_history_keys):
        return None
    stored = body.wire.stored_responses
    if stored is None:
        return CompletedRequest(body)
    previous = body.field(stored.previous_key) if _is_set(body, stored.previous_key) else None
    references = {
        raw: id for raw in body.messages if (id := stored.referenced_item(raw)) is not None
    }
    if previous is None and not references:
        return CompletedRequest(body)
    if previous is not None and not isinstance(previous, str):
        return None
    found = await responses.chain(namespace, previous, references.values())
    if any(id not in found.items for id in references.values()):
        return None
    sent = [found.items[references[raw]] if raw in references else raw for raw in body.messages]
    if previous is None:
        return CompletedRequest(replace(body, messages=sent))
    if found.response is None:
        return None
    before = (
        *items(found.response.lead),
        *_render_messages(found.messages, body.wire.dialect),
        *(item.content for item in found.response.items),
    )
    completed = replace(body, messages=(*before, *sent), replaced_fields=(stored.previous_key,))
    return CompletedRequest(completed, found.session, found.response.snapshot is not None)


def thread_of(body: RequestBody) -> str | None:
    """Return the id of the conversation at the provider that a request continues, if it names one.

    Its history is never known for certain, because other clients may change it there.
    """
    # Content that a provider caches is a prefix of many conversations, not one of them.
    names = body.wire.external_history_keys if body.wire.stored_responses is not None else ()
    for name in names:
        value = body.field(name)
        id = value.get("id") if isinstance(value, dict) else value
        if isinstance(id, str) and id and is_storable(id):
            return id
    return None


def can_be_continued(body: RequestBody) -> bool:
    """Return True if a later request can refer to the response to this one."""
    return body.wire.stored_responses is not None and body.field("store") is not False


def is_complete_reply(reply: Reply) -> bool:
    """Return True if a later request can continue from the reply."""
    return reply.id is not None and reply.finish in _COMPLETE_FINISHES


async def save_response(
    responses: Responses,
    session: Session,
    reply: Reply,
    *,
    lead: Iterable[bytes],
    snapshot: str | None,
) -> None:
    """Store the reply to the session's last message, so that a request can continue from it."""
    response_items = tuple(ResponseItem(_item_id(item), dumps(item)) for item in reply.messages)
    stored = StoredResponse(
        session=session.key,
        id=reply.id or "",
        tip=session.tip or "",
        snapshot=snapshot,
        items=response_items,
        lead=b"[" + b",".join(lead) + b"]",
    )
    await responses.put(stored)


def _render_messages(rows: Iterable[StoredMessage], dialect: str) -> Iterator[bytes]:
    """Yield the messages in the dialect; a session may have begun in another one."""
    for row in rows:
        if row.dialect == dialect:
            yield row.body
        else:
            message = Conversation((message_of(row),), dialect=row.dialect)
            yield from map(dumps, wire.render(message, dialect))


def _item_id(item: Mapping[str, Any]) -> str | None:
    id = item.get("id")
    return id if isinstance(id, str) and is_storable(id) else None


def _is_set(body: RequestBody, name: str) -> bool:
    return body.fields.get(name, b"null") != b"null"
