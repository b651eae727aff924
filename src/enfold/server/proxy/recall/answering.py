"""Answering: what a model that recalls is told, from the history of the branch it is on."""

from __future__ import annotations

import logging
from typing import Any

from enfold.budget import Decision
from enfold.engine import Session
from enfold.engine.recall import quote, recall, recall_found, room_for
from enfold.errors import InputError, NotFoundError, StoreError
from enfold.jsontext import loads

_log = logging.getLogger("enfold.proxy")

MOST = 3
"""So many recalls are answered in one turn."""
_TOKENS = 2_000
"""So many tokens has an answer at most."""
_FEWEST = 500
"""Tokens below which an answer says nothing."""

TOO_MANY = (
    f"Not answered: at most {MOST} recalls are answered in one turn. Go on with what you have."
)
_NO_ROOM = "Not answered: there is no room left for it. Go on with what you have."
_HOW = 'Give either {"query": "words to find"} or {"reference": "…", "start": 0}.'


def share(decision: Decision) -> int:
    """Tokens that one answer may have, so that all that a turn can ask for fit."""
    return min(_TOKENS, (decision.limit - decision.tokens) // (MOST + 1))


async def answer(session: Session, arguments: str, *, max_tokens: int) -> str:
    """What the model reads; a call that cannot be answered is told why."""
    if max_tokens < _FEWEST:
        return _NO_ROOM
    try:
        given = loads(arguments or "{}")
        return await _answer(session, given if isinstance(given, dict) else {}, max_tokens)
    except (InputError, NotFoundError) as error:
        return f"Not answered: {error}. {_HOW}"
    except StoreError as error:
        # A reply may be half said by now; the model can go on without, and no client fails.
        _log.warning("session %s: a recall was not answered: %s", session.id, error)
        return "Not answered: the history cannot be read now. Go on with what you have."


async def _answer(session: Session, given: dict[str, Any], max_tokens: int) -> str:
    query, reference, start = given.get("query"), given.get("reference"), given.get("start")
    if isinstance(reference, str) and reference.strip():
        begin = start if isinstance(start, int) else 0
        room = room_for(1, max_tokens)
        passage = await recall(session, reference.strip(), start=begin, max_tokens=room)
        return quote([passage])
    if isinstance(query, str) and query.strip():
        return quote(await recall_found(session, query, max_tokens=room_for(0, max_tokens)))
    raise InputError("neither a query nor a reference was given")
