"""Responses: what a model answered, by the id that later requests go on from.

A client that goes on from a response sends neither its items nor what came before them again. Both
are found here, inside one namespace. Providers keep responses for thirty days; so does this.
"""

from __future__ import annotations

from enfold.records import Exchange, ResponseItem, SessionKey, StoredResponse
from enfold.store import sessions
from enfold.store.database import Database
from enfold.text.words import is_storable

KEPT = 30 * 24 * 60 * 60 * 1000
"""Milliseconds."""


def put(db: Database, response: StoredResponse) -> None:
    """Keep a response; one that is there already stays as it is."""
    sessions.lock(db, response.session)
    now = db.now()
    db.change("drop_old_responses", before=now - KEPT)
    named = {"session": response.session, "id": response.id}
    made_of = {"tip": response.tip, "snapshot": response.snapshot, "lead": response.lead}
    if not db.change("put_response", **named, **made_of, now=now):
        return
    for row in db.rows("response_key", **named):
        items = [
            {"response": row["seq"], "place": place, "id": item.id, "content": item.content}
            for place, item in enumerate(response.items)
        ]
        db.change_many("insert_response_item", items)


def find(db: Database, namespace: str, id: str) -> StoredResponse | None:
    """The response of that id, if somebody in the namespace got it."""
    if not is_storable(id):
        return None
    row = db.row("response", namespace=namespace, id=id)
    if row is None:
        return None
    items = db.rows("items_of_response", response=row["seq"])
    return StoredResponse(
        session=SessionKey(row["session"]),
        id=row["id"],
        tip=row["tip"],
        snapshot=row["snapshot"],
        items=tuple(ResponseItem(item["id"], bytes(item["content"])) for item in items),
        lead=bytes(row["lead"]),
    )


def item(db: Database, namespace: str, id: str) -> bytes | None:
    """The item of that id, if it is part of a response in the namespace."""
    if not is_storable(id):
        return None
    row = db.row("response_item", namespace=namespace, id=id)
    return None if row is None else bytes(row["content"])


def put_exchange(db: Database, session: SessionKey, exchange: Exchange) -> None:
    """Keep an exchange; one that looks the same to the client at the same place is replaced."""
    sessions.lock(db, session)
    db.change(
        "put_exchange",
        session=session,
        snapshot=exchange.snapshot,
        message=exchange.message,
        shown=exchange.shown,
        dialect=exchange.dialect,
        content=exchange.content,
        now=db.now(),
    )


def exchanges_under(db: Database, session: SessionKey, snapshot: str) -> tuple[Exchange, ...]:
    """All that were had while the snapshot applied, oldest first."""
    rows = db.rows("exchanges_under", session=session, snapshot=snapshot)
    return tuple(Exchange(**{**dict(row), "content": bytes(row["content"])}) for row in rows)
