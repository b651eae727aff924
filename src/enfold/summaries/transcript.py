"""Transcripts: messages as plain text that a model can read, one block per message.

A block is `ROLE: text`, or `ROLE (name): text` where several people share a role, and blocks are
separated by blank lines. Tool calls and results are shortened to what a summary can need;
everything people and models wrote is there in full. A line inside a text that looks like the start
of a block is indented, so that nobody's words can pose as somebody else's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from enfold.jsontext import dump_text
from enfold.messages import Attachment, Data, Message, Part, Text, ToolCall, ToolResult
from enfold.summaries.fencing import escape

CALL_LENGTH = 600
RESULT_LENGTH = 2_400
"""In characters. The beginning and the end of what is longer are shown."""

_POSING = re.compile(r"^(?=[ \t]{0,1}(?:SYSTEM|USER|ASSISTANT|TOOL)\b[^\n:]{0,80}:)", re.MULTILINE)


def transcript(messages: Iterable[Message]) -> str:
    """All the messages, safe to put between fences; those with nothing to read are left out."""
    tools: dict[str, str] = {}
    blocks = [_block(message, tools) for message in messages]
    return escape("\n\n".join(block for block in blocks if block))


def _block(message: Message, tools: dict[str, str]) -> str:
    pieces = [_piece(part, tools) for part in message.parts]
    content = "\n".join(piece for piece in pieces if piece)
    if not content:
        return ""
    name = " ".join((message.name or "").split())
    speaker = f"{message.role.upper()} ({name})" if name else message.role.upper()
    return f"{speaker}: {content}"


def _piece(part: Part, tools: dict[str, str]) -> str:
    match part:
        case Text(text):
            return _POSING.sub("  ", text.strip())
        case ToolCall(call_id, name, arguments):
            tools[call_id] = name
            given = arguments if isinstance(arguments, str) else dump_text(arguments)
            return f"[calls {name}: {_shorten(given, CALL_LENGTH)}]"
        case ToolResult(call_id, inner, is_error, name):
            outcome = "failed" if is_error else "returned"
            shown = "\n".join(filter(None, (_piece(each, tools) for each in inner)))
            tool = name or tools.get(call_id) or "tool"
            return f"[{tool} {outcome}: {_shorten(shown, RESULT_LENGTH)}]"
        case Attachment(name, mime):
            return f"[attachment {name or 'without a name'}{f', {mime}' if mime else ''}]"
        case Data(value):
            return dump_text(value)
    return ""


def _shorten(text: str, length: int) -> str:
    """The first two thirds and the last third of the length, and how much is missing."""
    if len(text) <= length:
        return text
    head, tail = text[: length * 2 // 3], text[-(length // 3) :]
    return f"{head} [… {len(text) - len(head) - len(tail):,} characters left out …] {tail}"
