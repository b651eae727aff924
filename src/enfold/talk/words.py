"""Words: how a talk says what happened, and which way on there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from enfold.engine import Compression, Status
from enfold.engine.turns import is_interrupted
from enfold.engine.viewing import message_of
from enfold.errors import (
    AuthenticationError,
    BadReplyError,
    BlockedError,
    CompressionError,
    ContextOverflowError,
    EnfoldError,
    GatewayError,
    RateLimitError,
    RefusedError,
    UnavailableError,
)
from enfold.messages import Attachment, Data, Message, Part, ToolCall, text_of
from enfold.store.records import Hit, StoredMessage
from enfold.wording import number, when

INTERRUPTED = "interrupted: this is as far as the answer came"
NOT_KEPT = "failed here: this part of an answer is not kept"
CUT_OFF = "the answer was cut off: it reached the longest that the model gives"
UNANSWERED = "what was said last has no answer yet; /retry asks for one"

WAYS_ON: Mapping[type[EnfoldError], str] = {
    BlockedError: "/retry tries the compression again, /acknowledge goes on without it.",
    CompressionError: "Nothing was changed. /summarize tries again; you can also just go on.",
    AuthenticationError: "`enfold profiles` shows where the key comes from. Then /retry.",
    RateLimitError: "Your words are kept; wait a little, then /retry.",
    ContextOverflowError: "Your words are kept; /summarize makes room, /model takes a larger one.",
    UnavailableError: "Your words are kept; /retry asks again, /model asks another.",
    RefusedError: "Your words are kept; say it otherwise, or /model asks another.",
    BadReplyError: "Your words are kept; /retry asks again.",
    GatewayError: "Your words are kept; /retry asks again, /model asks another.",
}
"""What somebody can do about an error; the nearest ancestor's row counts."""

_OUTCOMES = {
    "kept": "Nothing was folded: it is not due.",
    "no_gain": "Nothing was folded: it would not have become smaller.",
    "nothing_new": "Nothing was folded: there is nothing new since the last summary.",
    "nothing_to_compress": "Nothing was folded: all of it is recent enough to stay.",
}
_NAMED: Mapping[type[Part], Callable[[Any], str]] = {
    ToolCall: lambda part: f"[call of {part.name}]",
    Attachment: lambda part: f"[attachment {part.name or part.mime or 'without a name'}]",
    Data: lambda _: "[data]",
}
"""How parts are shown that have no text to read."""
_BRIEF = 240
"""Characters of a message in a list."""


def way_on(error: EnfoldError) -> str:
    """What to do about it; nothing where its own words say it all."""
    return next((WAYS_ON[kind] for kind in type(error).__mro__ if kind in WAYS_ON), "")


def failure(error: EnfoldError) -> str:
    """The error, and the way on."""
    return f"{error}\n{way_on(error)}".rstrip()


def blocked(reason: str) -> str:
    """Why the session waits, and the way on."""
    return f"This session is blocked: {reason}\n{WAYS_ON[BlockedError]}"


def money(cost: float | None) -> str:
    """US dollars; unknown is not nothing."""
    if cost is None:
        return "cost unknown"
    return f"cost ${cost:.4f}" if cost else "no cost"


def compressed(done: Compression) -> str:
    """What a compression did: before, after, cost and time."""
    first = _OUTCOMES.get(done.outcome) or (
        f"Folded {number(done.messages + done.edited, 'message')}: {done.tokens_before:,} → "
        f"{done.tokens_after:,} tokens ({done.reduction:.0%} less), {money(done.cost)}, "
        f"{done.seconds:.1f} s, by {done.author}. /undo takes it back."
    )
    return "\n".join((first, *(f"Note: {warning}" for warning in done.warnings)))


def context(status: Status, profile: str | None, summary: str | None) -> str:
    """All figures of a session's context, and the summary in it."""
    load = status.decision.load
    rows = [
        ("model", f"{status.model} (counted with {status.tokenizer})"),
        ("profile", profile or "none"),
        ("in use", f"{load.total:,} tokens"),
        ("  system", f"{load.system + load.tools:,}"),
        ("  summary", f"{status.summary_tokens:,}"),
        ("  messages", f"{load.history - status.summary_tokens:,}"),
        ("  estimated", f"{load.estimate:,}"),
        ("limit", f"{status.context_limit:,}"),
        ("folded from", f"{status.threshold_token_count:,} (set by {status.threshold_source})"),
        ("messages", f"{status.messages:,} in all"),
        ("next fold", f"{status.compressible_message_count:,} messages"),
        ("stay", f"{status.retained_message_count:,} messages"),
        ("decision", str(status.decision)),
        ("blocked", status.blocked or "no"),
    ]
    lines = [f"{name:12} {value}" for name, value in rows]
    return "\n".join(lines if summary is None else [*lines, "", "The summary in use:", summary])


def history(rows: Sequence[StoredMessage]) -> str:
    """Messages in brief, each with its place."""
    return "\n".join(
        f"#{row.depth} {row.role}, {when(row.created_at)}\n  {brief(said(message_of(row)))}"
        for row in rows
    )


def hits(found: Sequence[Hit]) -> str:
    """What a search found, each with its place."""
    lines = [
        f"#{hit.depth} {hit.role}, {when(hit.created_at)}\n  {brief(hit.snippet)}" for hit in found
    ]
    return "\n".join((*lines, f"{number(len(found), 'message')} found."))


def said(message: Message) -> str:
    """What a message says to a person: its text, and the names of what else is in it."""
    end = f"[{INTERRUPTED}]" if is_interrupted(message) else ""
    return "\n".join(filter(None, (text(message), end)))


def text(message: Message) -> str:
    """The same, without a word on how it ended."""
    named = [_NAMED[type(part)](part) for part in message.parts if type(part) in _NAMED]
    return "\n".join(filter(None, (text_of(message.parts), *named)))


def brief(long: str) -> str:
    """The beginning, on one line."""
    line = " ".join(long.split())
    return line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1]}…"
