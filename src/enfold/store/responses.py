"""Responses of models, by the id from which later requests continue; and recall exchanges.

A client that continues from a response sends neither its items nor the history before them again.
Both are found here, within one namespace. Providers keep responses for thirty days; so does this.
"""

from __future__ import annotations

from dataclasses import asdict

from enfold.records import Exchange, ResponseItem, SessionKey, StoredResponse
from enfold.store import sessions
from enfold.store.database import Database
from enfold.text.words import is_storable

KEPT = 30 * 24 * 60 * 60 * 1000
"""The time for which responses are kept, in milliseconds."""


def put(db: Database, response: StoredResponse) -> None:
    """Store a response; one with the same id stays as it is."""
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
    """Return the response of that id in the namespace, or None."""
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
    """Return the content of the response item with that id in the namespace, or None."""
    if not is_storable(id):
        return None
    row = db.row("response_item", namespace=namespace, id=id)
    return None if row is None else bytes(row["content"])


def put_exchange(db: Database, session: SessionKey, exchange: Exchange) -> None:
    """Store an exchange, in place of one whose client version is the same at the same place."""
    sessions.lock(db, session)
    db.change("put_exchange", session=session, now=db.now(), **asdict(exchange))


def exchanges_under(db: Database, session: SessionKey, snapshot: str) -> tuple[Exchange, ...]:
    """Return the exchanges that were stored while the snapshot applied, oldest first."""
    rows = db.rows("exchanges_under", session=session, snapshot=snapshot)
    return tuple(Exchange(**{**dict(row), "content": bytes(row["content"])}) for row in rows)
