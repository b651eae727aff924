"""Assembly: the messages that are sent in place of those that came.

Messages that a snapshot keeps are sent with the client's bytes, edited messages with the bytes that
were recorded, and the summary stands where the dialect wants it. The same snapshot gives the same
bytes on every turn, so that the provider's prompt cache keeps hitting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from enfold import wire
from enfold.engine.recognition import ClientHistory
from enfold.engine.state import message_of
from enfold.errors import InputError
from enfold.jsontext import dumps, loads, texts_within
from enfold.records import Edit, Snapshot, StoredMessage, SummaryPlace, ViewRow
from enfold.server.proxy.bodies import MessageFacts, parse_message
from enfold.server.proxy.recorder import RecordedResponse
from enfold.summaries import summary_tokens
from enfold.tokens import count_message
from enfold.view import place_summary
from enfold.wire.cache_marks import remove_cache_marks

MARKER_COPIED = "marker-in-tool-arguments"

_MARKER = re.compile(r"⟨ [^⟩\n]{1,300} ⟩")
"""Matches all markers that enfold puts in place of a text."""
_MARKER_STARTS = ("⟨".encode(), b"27e8")
"""The first character of a marker in JSON, plain and escaped."""


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message of the view, as bytes with its counts."""

    raw: bytes
    tokens: int
    estimate: int = 0


@dataclass(frozen=True, slots=True)
class ViewFormat:
    """The form in which a view is written and counted."""

    dialect: str
    tokenizer: str
    note: str = ""
    """A sentence for the model that stands next to a summary."""


def assemble_view(
    snapshot: Snapshot,
    rows: Iterable[ViewRow],
    sent: Sequence[bytes],
    facts: Sequence[MessageFacts],
    history: ClientHistory,
    form: ViewFormat,
) -> list[OutgoingMessage]:
    """Return the snapshot's view of the messages that were sent, which have these facts."""
    unchanged = [
        OutgoingMessage(raw, fact.tokens, fact.estimate)
        for raw, fact in zip(sent, facts, strict=True)
    ]
    indexes = {id: index for index, id in enumerate(history.ids)}
    view: list[OutgoingMessage] = []
    summary_at = None
    for row in rows:
        if isinstance(row, SummaryPlace):
            summary_at = len(view)
        else:
            view.append(_outgoing_message(row, unchanged, indexes, form))
    view += unchanged if snapshot.cutoff is None else unchanged[indexes[snapshot.cutoff] + 1 :]
    if summary_at is None or snapshot.text is None:
        return view
    return _insert_summary(view, summary_at, snapshot.text, form)


def _outgoing_message(
    row: StoredMessage | Edit,
    unchanged: Sequence[OutgoingMessage],
    indexes: Mapping[str, int],
    form: ViewFormat,
) -> OutgoingMessage:
    """Return the client's bytes of a message, or those of its edit.

    An edit in another dialect cannot be sent; its message is sent as it came.
    """
    if isinstance(row, StoredMessage):
        return unchanged[indexes[row.id]]
    if row.dialect != form.dialect:
        return unchanged[indexes[row.message]]
    tokens = row.tokens
    if row.tokenizer != form.tokenizer:
        tokens = count_message(message_of(row), form.tokenizer)
    return OutgoingMessage(remove_cache_marks(row.body), tokens, row.estimate)


def _insert_summary(
    view: list[OutgoingMessage], at: int, summary: str, form: ViewFormat
) -> list[OutgoingMessage]:
    """Put the summary between its neighbours or into one of them; only that one is rendered."""
    start, end = max(0, at - 1), at + 1
    neighbours = [(parse_message(each.raw, form.dialect), each) for each in view[start:end]]
    before = neighbours[0][0] if start < at else None
    after = neighbours[-1][0] if at < len(view) else None
    placed = place_summary(summary, before, after, form.dialect, note=form.note)
    placed_ids = {id(message) for message in placed}
    unchanged = {id(message): each for message, each in neighbours if id(message) in placed_ids}
    changed = [each for message, each in neighbours if id(message) not in placed_ids]
    tokens = summary_tokens(summary, form.tokenizer, note=form.note)
    tokens += sum(each.tokens for each in changed)
    estimate = sum(each.estimate for each in changed)
    render = wire.get(form.dialect).render_message
    new = [
        unchanged.get(id(message)) or OutgoingMessage(dumps(render(message)), tokens, estimate)
        for message in placed
    ]
    return [*view[:start], *new, *view[end:]]


def tools_with_marker(response: RecordedResponse) -> tuple[str, ...]:
    """Return the names of tools that the model calls with a marker in the arguments."""
    raw = b"".join(response.chunks)
    if _MARKER_STARTS[0] not in raw and _MARKER_STARTS[1] not in raw.lower():
        return ()
    return tuple(call.name for call in response.reply.calls if _has_marker(call.arguments))


def _has_marker(arguments: str) -> bool:
    try:
        texts = [text for _, text in texts_within(loads(arguments))]
    except InputError:
        texts = [arguments]
    return any(_MARKER.search(text) for text in texts)
