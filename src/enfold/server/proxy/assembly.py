"""Assembly: the messages that are sent in place of those that came.

What a snapshot keeps is sent with the client's own bytes, what it edits with the bytes that were
recorded, and the summary stands where the dialect wants it. The same snapshot gives the same bytes
on every turn, so a provider's cache goes on to hit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from enfold import wire
from enfold.engine.recognition import ClientHistory
from enfold.engine.state import message_of
from enfold.errors import InputError
from enfold.jsontext import dumps, loads, texts_within
from enfold.messages import Message
from enfold.records import Edit, Snapshot, StoredMessage, SummaryPlace, ViewRow
from enfold.server.proxy.bodies import Facts, parse
from enfold.server.proxy.recorder import Heard
from enfold.summaries import summary_tokens
from enfold.tokens import count_message
from enfold.view import place_summary
from enfold.wire.cache_marks import remove_cache_marks


@dataclass(frozen=True, slots=True)
class Piece:
    """A message to send."""

    raw: bytes
    tokens: int
    estimate: int = 0


@dataclass(frozen=True, slots=True)
class Wording:
    """How messages are written and counted."""

    dialect: str
    tokenizer: str
    note: str = ""
    """What the model is told beside a summary."""


def assemble(
    snapshot: Snapshot,
    entries: Iterable[ViewRow],
    sent: Sequence[bytes],
    facts: Sequence[Facts],
    history: ClientHistory,
    wording: Wording,
) -> list[Piece]:
    """What a snapshot shows of the messages that were sent, with these facts and that history."""
    own = [Piece(raw, fact.tokens, fact.estimate) for raw, fact in zip(sent, facts, strict=True)]
    places = {id: index for index, id in enumerate(history.ids)}
    pieces: list[Piece] = []
    summary_at = None
    for shown in entries:
        if isinstance(shown, SummaryPlace):
            summary_at = len(pieces)
        else:
            pieces.append(_piece(shown, own, places, wording))
    pieces += own[places[snapshot.cutoff] + 1 :] if snapshot.cutoff is not None else own
    if summary_at is None or snapshot.text is None:
        return pieces
    return _with_summary(pieces, summary_at, snapshot.text, wording)


def _piece(
    shown: StoredMessage | Edit, own: Sequence[Piece], places: Mapping[str, int], wording: Wording
) -> Piece:
    """What is shown, with the client's own bytes where it is unchanged.

    An edit in another dialect is not sent: its message is, as it came.
    """
    if isinstance(shown, StoredMessage):
        return own[places[shown.id]]
    if shown.dialect != wording.dialect:
        return own[places[shown.message]]
    same = shown.tokenizer == wording.tokenizer
    tokens = shown.tokens if same else count_message(message_of(shown), wording.tokenizer)
    return Piece(remove_cache_marks(shown.body), tokens, shown.estimate)


def _with_summary(pieces: list[Piece], at: int, summary: str, wording: Wording) -> list[Piece]:
    """The summary between its neighbours, or in one of them; only that one is written anew."""
    start, end = max(0, at - 1), at + 1
    neighbours = [(parse(piece.raw, wording.dialect), piece) for piece in pieces[start:end]]
    ahead = neighbours[0][0] if start < at else None
    behind = neighbours[-1][0] if at < len(pieces) else None
    placed = place_summary(summary, ahead, behind, wording.dialect, note=wording.note)
    still = {id(message) for message in placed}
    unchanged = {id(message): piece for message, piece in neighbours if id(message) in still}
    changed = [piece for message, piece in neighbours if id(message) not in still]
    own = summary_tokens(summary, wording.tokenizer, note=wording.note)
    tokens = own + sum(piece.tokens for piece in changed)
    estimate = sum(piece.estimate for piece in changed)
    new = [
        unchanged.get(id(message)) or Piece(_render(message, wording.dialect), tokens, estimate)
        for message in placed
    ]
    return [*pieces[:start], *new, *pieces[end:]]


def _render(message: Message, dialect: str) -> bytes:
    return dumps(wire.get(dialect).render_message(message))


COPIED = "marker-in-tool-arguments"

_MARKER = re.compile(r"⟨ [^⟩\n]{1,300} ⟩")
"""All that enfold puts in place of a text looks like this."""
_SIGNS = ("⟨".encode(), b"27e8")
"""Its first character in JSON, as it is or escaped."""


def copied(heard: Heard) -> tuple[str, ...]:
    """The names of tools whose arguments have a marker in them."""
    raw = b"".join(heard.chunks)
    if _SIGNS[0] not in raw and _SIGNS[1] not in raw.lower():
        return ()
    return tuple(call.name for call in heard.reply.calls if _has_marker(call.arguments))


def _has_marker(arguments: str) -> bool:
    return any(_MARKER.search(text) for text in _texts(arguments))


def _texts(arguments: str) -> Iterator[str]:
    try:
        given: Any = loads(arguments)
    except InputError:
        yield arguments
        return
    yield from (text for _, text in texts_within(given))
