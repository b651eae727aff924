"""Between messages and rows: drafts of what is written, and views of what is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from enfold import dialects
from enfold.estimates import estimate
from enfold.identity import content_hash
from enfold.jsontext import dump_text, dumps, loads
from enfold.messages import Data, Message, Part, Text, ToolCall, ToolResult
from enfold.store.records import Draft, Edit, StoredMessage, Summarized, ViewRows
from enfold.summaries import summary_tokens
from enfold.tokens import count_messages
from enfold.view import Shown, View

SETTLED = "settledMessages"
"""The field of a snapshot's content that says how many of the messages shown its fold left."""

POINTS_TO = "pointsTo"
"""The field of an edit's ledger with the ids of the messages that it points to."""

_DECODED = 4_096
"""How many decoded messages are kept at hand."""


def drafts(messages: Sequence[Message], tokenizer: str) -> tuple[Draft, ...]:
    """The messages as they are stored: exact bytes, counts, and what can be searched."""
    counts = count_messages(messages, tokenizer)
    return tuple(
        Draft(
            role=message.role,
            dialect=message.dialect,
            body=dumps(dialects.get(message.dialect).render_message(message)),
            content_hash=content_hash(message),
            tokens=tokens,
            tokenizer=tokenizer,
            estimate=estimate(message),
            search_text=search_text(message),
            client_id=message.id,
            name=message.name,
        )
        for message, tokens in zip(messages, counts, strict=True)
    )


def search_text(message: Message) -> str:
    """All that can be found of a message: what is said, and what tools were given and returned."""
    return "\n".join(_searchable(message.parts))


def _searchable(parts: Iterable[Part]) -> Iterable[str]:
    for part in parts:
        match part:
            case Text(text):
                yield text
            case ToolCall(name=name, arguments=arguments):
                yield f"{name} {arguments if isinstance(arguments, str) else dump_text(arguments)}"
            case ToolResult(parts=inner):
                yield from _searchable(inner)
            case Data(value):
                yield dump_text(value)


@lru_cache(maxsize=_DECODED)
def _decode(dialect: str, body: bytes) -> Message:
    return dialects.get(dialect).parse_message(loads(body))


def message_of(row: StoredMessage | Edit) -> Message:
    """A stored message, or what is shown in its place."""
    return _decode(row.dialect, row.body)


def view_of(rows: ViewRows, tokenizer: str) -> View:
    """The view that the rows make up, every count by the tokenizer."""
    entries = [row for row in rows.shown if not isinstance(row, Summarized)]
    at = next((i for i, row in enumerate(rows.shown) if isinstance(row, Summarized)), 0)
    summary = rows.snapshot.text if rows.snapshot is not None else None
    shown = [_shown(row) for row in (*entries, *rows.after)]
    foreign = [i for i, row in enumerate((*entries, *rows.after)) if row.tokenizer != tokenizer]
    counts = count_messages([shown[i].message for i in foreign], tokenizer)
    for index, tokens in zip(foreign, counts, strict=True):
        shown[index] = replace(shown[index], tokens=tokens)
    return View(
        shown=tuple(shown),
        tokenizer=tokenizer,
        tip=rows.tip,
        snapshot=rows.snapshot.id if rows.snapshot is not None else None,
        summary=summary,
        summary_tokens=summary_tokens(summary, tokenizer) if summary is not None else 0,
        summary_at=at,
        settled=_settled(rows, len(entries)),
        covered=len(entries),
        cutoff=rows.snapshot.cutoff if rows.snapshot is not None else None,
    )


def _settled(rows: ViewRows, entries: int) -> int:
    """How many of the entries the last fold left; all of them where the snapshot does not say."""
    return int(rows.snapshot.content.get(SETTLED, entries)) if rows.snapshot is not None else 0


def _shown(row: StoredMessage | Edit) -> Shown:
    if isinstance(row, Edit):
        points_to = tuple((row.ledger or {}).get(POINTS_TO, ()))
        message = message_of(row)
        return Shown(row.message, message, row.tokens, row.estimate, row.id, row.depth, points_to)
    return Shown(row.id, message_of(row), row.tokens, row.estimate, depth=row.depth)
