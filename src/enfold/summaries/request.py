"""The summarizer port: what a summarizer is given, and what it gives back.

Whoever writes summaries, a model behind the gateway or the built-in `local` one, takes a
`SummaryRequest` and returns a `Summary`, or raises `SummaryError`. Nothing is ever returned that
is empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol, TypeAlias

from enfold.errors import ConfigError
from enfold.history import cut_points
from enfold.jsontext import dump_text
from enfold.messages import Attachment, Data, Message, Part, Text, ToolCall, ToolResult
from enfold.summaries.fence import escape
from enfold.tokens import get

Style: TypeAlias = Literal["default", "code", "concise", "detailed"]

TIGHTER = 0.75
"""Each retry aims at this share of the attempt before it."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What to fold, what is already folded, and how long the result may be."""

    messages: tuple[Message, ...]
    """To be folded, oldest first."""
    previous: str | None = None
    """The text of the summary that this one continues. None for the first."""
    recent: tuple[Message, ...] = ()
    """What comes after the cutoff: shows what matters now, is never summarized."""
    max_tokens: int = 1_000
    """The summary's limit, by `tokenizer`."""
    tokenizer: str = "o200k_base"
    style: Style = "default"
    prompt: str | None = None
    """A custom prompt in place of the style's. Only a model reads it."""
    tightness: int = 0
    """How many attempts were too long before this one."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens is {self.max_tokens}; a summary needs at least 1 token")
        if self.tightness < 0:
            raise ConfigError(f"tightness is {self.tightness}; it counts attempts from 0")

    @property
    def target(self) -> int:
        """The length to aim at: the limit, less with every attempt that was too long."""
        return max(1, int(self.max_tokens * TIGHTER**self.tightness))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model reported of the call; None where it said nothing."""

    input_tokens: int | None = None
    """All that was read, from the provider's cache or not."""
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary and who wrote it."""

    text: str
    author: str
    """The summarizer's name, such as `local`."""
    tokens: int
    """Exact, by the request's tokenizer."""
    usage: Usage | None = None
    """None where no model was called."""
    cost: float | None = None
    """In US dollars. None is unknown; 0 where no model was called."""
    notes: tuple[str, ...] = ()
    """What there is to say of how it came about, such as that another was to write it."""

    def __post_init__(self) -> None:
        if self.usage is None and self.cost is None:
            object.__setattr__(self, "cost", 0.0)


class Summarizer(Protocol):
    """Writes summaries."""

    @property
    def name(self) -> str:
        """Recorded with every snapshot it writes."""
        ...

    @property
    def max_input(self) -> int | None:
        """How many tokens it can read at once, its answer included. None for any number."""
        ...

    async def summarize(self, request: SummaryRequest) -> Summary:
        """The summary of the request, or `SummaryError`."""
        ...


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


_ROOM_FOR_INSTRUCTIONS = 1_500
_SMALLEST_PIECE = 1_000
_CHARACTERS_PER_TOKEN = 2
"""On the safe side: a slice of so many characters per token is within its piece in any language."""


def pieces(request: SummaryRequest, max_input: int | None) -> Iterator[tuple[Message, ...]]:
    """The request's messages, in runs that fit the summarizer's input. None is no limit."""
    if max_input is None:
        yield request.messages
        return
    count = get(request.tokenizer).count_many
    room = room_for_messages(request, max_input)
    messages = tuple(part for message in request.messages for part in _slices(message, room))
    sizes = count([transcript((message,)) for message in messages])
    for first, last in runs(messages, sizes, room):
        yield messages[first:last]


def runs(messages: Sequence[Message], sizes: Sequence[int], room: int) -> Iterator[tuple[int, int]]:
    """Where each run of messages that fits begins and ends; what cannot be divided is one run."""
    start = size = 0
    points = (*cut_points(messages), len(messages))
    for first, last in pairwise(points):
        unit = sum(sizes[first:last])
        if size and size + unit > room:
            yield start, first
            start, size = first, 0
        size += unit
    yield start, len(messages)


def room_for_messages(request: SummaryRequest, max_input: int) -> int:
    """How many tokens of messages one piece can hold, beside all that comes with it."""
    count = get(request.tokenizer).count_many
    taken = sum(count([transcript(request.recent), request.previous or ""]))
    room = max_input - request.max_tokens - taken - _ROOM_FOR_INSTRUCTIONS
    return max(_SMALLEST_PIECE, room - request.max_tokens)


def _slices(message: Message, room: int) -> Iterator[Message]:
    """The message itself, or its long texts spread over several messages of the same speaker."""
    length = room * _CHARACTERS_PER_TOKEN
    parts = [
        replace(part, text=part.text[at : at + length])
        for part in message.parts
        if isinstance(part, Text)
        for at in range(0, max(1, len(part.text)), length)
    ]
    if all(len(part.text) <= length for part in message.parts if isinstance(part, Text)):
        yield message
        return
    others = tuple(part for part in message.parts if not isinstance(part, Text))
    yield replace(message, parts=(parts[0], *others))
    for part in parts[1:]:
        yield replace(message, parts=(part,))
