"""Assembly: the messages that are sent in place of those that came.

Messages that a snapshot keeps are sent with the client's bytes, edited messages with the bytes that
were recorded, and the summary stands where the dialect wants it. The same snapshot gives the same
bytes on every turn, so that the provider's prompt cache keeps hitting.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from enfold import wire
from enfold.engine.recognition import ClientHistory
from enfold.engine.state import message_of
from enfold.errors import InputError
from enfold.jsontext import dumps, loads, texts_within
from enfold.messages import Message, Role
from enfold.records import Edit, Snapshot, StoredMessage, SummaryPlace, ViewRow
from enfold.server.proxy.bodies import MessageFacts, parse_message
from enfold.server.proxy.recorder import RecordedResponse
from enfold.summaries import summary_tokens
from enfold.tokens import count_message
from enfold.view import (
    join_user_messages,
    joints,
    puts_summary_in_user_message,
    summary_message,
)
from enfold.wire.request_additions import remove_cache_marks

MARKER_COPIED = "marker-in-tool-arguments"

_MARKER = re.compile(r"⟨ [^⟩\n]{1,300} ⟩")
"""Matches all markers that enfold puts in place of a text."""
_MARKER_STARTS = ("⟨".encode(), b"27e8")
"""The first character of a marker in JSON, plain and escaped."""


class OutgoingMessage(NamedTuple):
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
    summary_role: Role = "system"


def assemble_view(
    snapshot: Snapshot,
    rows: Iterable[ViewRow],
    sent: Sequence[bytes],
    facts: Sequence[MessageFacts],
    history: ClientHistory,
    form: ViewFormat,
) -> list[OutgoingMessage]:
    """Return the snapshot's view of the messages that were sent, which have these facts."""
    raws = list(sent)

    def unchanged(index: int) -> OutgoingMessage:
        fact = facts[index]
        return OutgoingMessage(raws[index], fact.tokens, fact.estimate)

    indexes = {id: index for index, id in enumerate(history.ids)}
    view: list[OutgoingMessage] = []
    places: list[int] = []
    summary_at = None
    for row in rows:
        if isinstance(row, SummaryPlace):
            summary_at = len(view)
        else:
            view.append(_outgoing_message(row, unchanged, indexes, form))
            places.append(indexes[row.id if isinstance(row, StoredMessage) else row.message])
    after = 0 if snapshot.cutoff is None else indexes[snapshot.cutoff] + 1
    view += map(unchanged, range(after, len(facts)))
    places += range(after, len(facts))
    if summary_at is None or snapshot.text is None:
        return view
    return _insert_summary(view, places, summary_at, snapshot.text, form)


def _outgoing_message(
    row: StoredMessage | Edit,
    unchanged: Callable[[int], OutgoingMessage],
    indexes: Mapping[str, int],
    form: ViewFormat,
) -> OutgoingMessage:
    """Return the client's bytes of a message, or those of its edit.

    An edit in another dialect cannot be sent; its message is sent as it came.
    """
    if isinstance(row, StoredMessage):
        return unchanged(indexes[row.id])
    if row.dialect != form.dialect:
        return unchanged(indexes[row.message])
    tokens = row.tokens
    if row.tokenizer != form.tokenizer:
        tokens = count_message(message_of(row), form.tokenizer)
    return OutgoingMessage(remove_cache_marks(row.body), tokens, row.estimate)


def _insert_summary(
    view: list[OutgoingMessage], places: Sequence[int], at: int, summary: str, form: ViewFormat
) -> list[OutgoingMessage]:
    """Put the summary in its place; messages that have to join others are rendered anew."""
    message = summary_message(summary, form.dialect, role=form.summary_role, note=form.note)
    render = wire.get(form.dialect).render_message
    tokens = summary_tokens(summary, form.tokenizer, note=form.note)
    placed = OutgoingMessage(dumps(render(message)), tokens)
    view = [*view[:at], placed, *view[at:]]
    if not puts_summary_in_user_message(form.dialect):
        return view
    joined: list[OutgoingMessage] = []
    start = 0
    for first, last in _runs(index for index in joints(places, at) if 0 < index < len(view)):
        joined += view[start : first - 1]
        joined += _joined(view[first - 1 : last + 1], form)
        start = last + 1
    return [*joined, *view[start:]]


def _runs(indexes: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of every run of consecutive numbers."""
    run: list[int] = []
    for index in indexes:
        if run and index != run[-1] + 1:
            yield run[0], run[-1]
            run = []
        run.append(index)
    if run:
        yield run[0], run[-1]


def _joined(run: Sequence[OutgoingMessage], form: ViewFormat) -> list[OutgoingMessage]:
    """Return messages that follow each other across gaps, user messages in a row as one."""
    render = wire.get(form.dialect).render_message
    result: list[OutgoingMessage] = []
    last: Message | None = None
    for each in run:
        message, shown = parse_message(each.raw, form.dialect), each
        if last is not None and message.role == last.role == "user":
            (message,) = join_user_messages((last, message), {1})
            before = result.pop()
            shown = OutgoingMessage(
                dumps(render(message)),
                before.tokens + each.tokens,
                before.estimate + each.estimate,
            )
        result.append(shown)
        last = message
    return result


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
