"""The interface of summarizers: the request, the summary, and the transcript of messages.

A summarizer, a model behind the gateway or the built-in `local` one, takes a `SummaryRequest` and
returns a `Summary`, or raises `SummaryError`. A summary is never empty.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from enfold.errors import ConfigError
from enfold.history import cut_points
from enfold.jsontext import dump_text
from enfold.messages import Attachment, Data, Message, Part, Text, ToolCall, ToolResult
from enfold.summaries.fence import escape
from enfold.tokens import get

Style: TypeAlias = Literal["default", "agent", "code", "concise", "detailed"]

AGENT_SECTIONS = (
    "Goal",
    "Constraints",
    "State",
    "Key Points",
    "Decisions",
    "Errors and Fixes",
    "Tried Without Success",
    "Next Step",
    "Open Questions",
    "Mentioned",
)
"""The sections of a summary in the style `agent`."""

_TIGHTER = 0.75
"""The target of each retry, as a share of the attempt before it."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """The messages to summarize, the previous summary, and the limit of the new one."""

    messages: tuple[Message, ...]
    """The messages to summarize, oldest first."""
    previous: str | None = None
    """The text of the summary that this one continues. None for the first."""
    recent: tuple[Message, ...] = ()
    """The messages after the cutoff. They show the current subject and are not summarized."""
    max_tokens: int = 1_000
    """The summary's limit, by `tokenizer`."""
    tokenizer: str = "o200k_base"
    style: Style = "default"
    prompt: str | None = None
    """A custom prompt in place of the style's. The built-in summarizer ignores it."""
    tightness: int = 0
    """The number of earlier attempts that were too long."""
    draft: str | None = None
    """A summary of the same messages that is to be written again. None for the first attempt."""
    missing: tuple[str, ...] = ()
    """Exact items that the draft must mention, and does not."""
    invented: tuple[str, ...] = ()
    """Items and quotations of the draft that its input does not have."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens is {self.max_tokens}; a summary needs at least 1 token")
        if self.tightness < 0:
            raise ConfigError(f"tightness is {self.tightness}; it counts attempts from 0")

    @property
    def target(self) -> int:
        """The target length: the limit, and less after each attempt that was too long."""
        return max(1, int(self.max_tokens * _TIGHTER**self.tightness))


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage that a model reported; None where it reported nothing."""

    input_tokens: int | None = None
    """All input, from the provider's cache or not."""
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary and its author."""

    text: str
    author: str
    """The summarizer's name, such as `local`."""
    tokens: int
    """Exact, by the request's tokenizer."""
    usage: Usage | None = None
    """None if no model was called."""
    cost: float | None = None
    """In US dollars. None is unknown; 0 if no model was called."""
    notes: tuple[str, ...] = ()
    """Remarks for the report, such as that another summarizer failed before."""

    def __post_init__(self) -> None:
        if self.usage is None and self.cost is None:
            object.__setattr__(self, "cost", 0.0)


class Summarizer(Protocol):
    """Writes summaries."""

    @property
    def name(self) -> str:
        """The name that is recorded with every snapshot."""
        ...

    @property
    def max_input(self) -> int | None:
        """Maximum tokens of input and answer together. None is no limit."""
        ...

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the summary of the request, or raise `SummaryError`."""
        ...


@runtime_checkable
class SummarizerGroup(Protocol):
    """Several summarizers that take turns."""

    def after(self, author: str) -> Summarizer | None:
        """Return those to ask after the author of a summary. None if that was the last."""
        ...


def style_for(messages: Iterable[Message], previous: str | None) -> Style:
    """Return the style where none is set: `agent` if tools are called, or if it was before."""
    headings = (f"## {name}\n" for name in AGENT_SECTIONS if name != "Key Points")
    if previous is not None and any(heading in previous for heading in headings):
        return "agent"
    calls = any(isinstance(part, ToolCall) for message in messages for part in message.parts)
    return "agent" if calls else "default"


CALL_LENGTH = 600
RESULT_LENGTH = 2_400
"""Characters. Of longer calls and results the beginning and the end are shown."""

_SPEAKER_LABEL = re.compile(
    r"^(?=[ \t]{0,1}(?:SYSTEM|USER|ASSISTANT|TOOL)\b[^\n:]{0,80}:)", re.MULTILINE
)


def transcript(messages: Iterable[Message]) -> str:
    """Return the messages as text that is safe inside a fence, without empty messages."""
    tools: dict[str, str] = {}
    blocks: list[str] = []
    day = ""
    for message in messages:
        block = _block(message, tools)
        if block and message.at is not None and day_of(message) != day:
            day = day_of(message)
            block = f"[{day}]\n{block}"
        blocks.append(block)
    return escape("\n\n".join(block for block in blocks if block))


def day_of(message: Message) -> str:
    """Return the day of a message, such as 2026-05-07; empty if its time is not known."""
    return "" if message.at is None else message.at.date().isoformat()


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
            return _SPEAKER_LABEL.sub("  ", text.strip())
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
    """Return the first two thirds and the last third of the length, and the missing number."""
    if len(text) <= length:
        return text
    head, tail = text[: length * 2 // 3], text[-(length // 3) :]
    return f"{head} [… {len(text) - len(head) - len(tail):,} characters left out …] {tail}"


_INSTRUCTION_TOKENS = 1_500
_MIN_INPUT = 1_000
_CHARACTERS_PER_TOKEN = 2
"""At most: a slice with two characters per token fits in any language."""


def pieces(request: SummaryRequest, max_input: int | None) -> Iterator[tuple[Message, ...]]:
    """Yield the request's messages in runs that fit the summarizer's input. None is no limit."""
    if max_input is None:
        yield request.messages
        return
    count = get(request.tokenizer).count_many
    budget = input_budget(request, max_input)
    messages = tuple(part for message in request.messages for part in _slices(message, budget))
    sizes = count([transcript((message,)) for message in messages])
    for first, last in runs(messages, sizes, budget):
        yield messages[first:last]


def runs(
    messages: Sequence[Message], sizes: Sequence[int], budget: int
) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each run of messages that fits; a unit is never divided."""
    start = size = 0
    points = (*cut_points(messages), len(messages))
    for first, last in pairwise(points):
        unit = sum(sizes[first:last])
        if size and size + unit > budget:
            yield start, first
            start, size = first, 0
        size += unit
    yield start, len(messages)


def input_budget(request: SummaryRequest, max_input: int) -> int:
    """Return the tokens of messages in one request, next to everything else that it contains."""
    count = get(request.tokenizer).count_many
    taken = sum(count([transcript(request.recent), request.previous or ""]))
    budget = max_input - request.max_tokens - taken - _INSTRUCTION_TOKENS
    return max(_MIN_INPUT, budget - request.max_tokens)


def _slices(message: Message, budget: int) -> Iterator[Message]:
    """Yield the message, or several messages of the same speaker with slices of its long text."""
    length = budget * _CHARACTERS_PER_TOKEN
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


# The time limit of each call, and the parts that are done. A long conversation needs many calls
# of a small model, and every call restarts the limit.

OnPart: TypeAlias = Callable[[int, int], None]
"""Called with the number of the part that begins, and the number of all parts."""


@dataclass(frozen=True, slots=True)
class _CallWatch:
    limit: asyncio.Timeout
    seconds: float | None
    on_part: OnPart | None


_CURRENT: ContextVar[_CallWatch | None] = ContextVar("call_watch", default=None)


@asynccontextmanager
async def watch_calls(
    seconds: float | None, on_part: OnPart | None
) -> AsyncIterator[asyncio.Timeout]:
    """Raise `TimeoutError` if a call takes longer than that. None is no limit."""
    async with asyncio.timeout(seconds) as limit:
        token = _CURRENT.set(_CallWatch(limit, seconds, on_part))
        try:
            yield limit
        finally:
            _CURRENT.reset(token)


def begin_part(part: int, parts: int) -> None:
    """Restart the time limit for the next call, and report the part."""
    watch = _CURRENT.get()
    if watch is None:
        return
    if watch.seconds is not None and not watch.limit.expired():
        watch.limit.reschedule(asyncio.get_running_loop().time() + watch.seconds)
    if watch.on_part is not None:
        watch.on_part(part, parts)


HEADING = "## The user's own words, still in force"
_QUOTE = "> "
_SECTION = re.compile(
    rf"\n*^{re.escape(HEADING)}\n\n(?P<quotes>(?:^>[^\n]*\n?|^\n(?=>))+)\Z", re.MULTILINE
)
_FORGED = re.compile(
    r"^(?P<marks>\s*#+)(?P<rest>\s*The user.s own words)", re.MULTILINE | re.IGNORECASE
)


def add_words(summary: str, words: Iterable[str]) -> str:
    """Return the summary with the words quoted at its end, each once."""
    body = _FORGED.sub(r"(quoted)\g<rest>", summary.strip())
    quotes = [_quote(text) for text in dict.fromkeys(words) if text.strip()]
    return "\n\n".join((body, HEADING, *quotes)) if quotes else body


def take_words(summary: str) -> tuple[str, tuple[str, ...]]:
    """Return a summary without its quoted words, and the words."""
    found = _SECTION.search(summary)
    if found is None:
        return summary, ()
    quotes = re.split(r"\n\n(?=> )", found["quotes"].strip())
    return summary[: found.start()], tuple(map(_unquote, quotes))


def words_tokens(words: Iterable[str], tokenizer: str) -> int:
    """Return the tokens that quoting the words adds to a summary, at most."""
    quoted = add_words("", words)
    return get(tokenizer).count(quoted) + 1 if quoted else 0


def _quote(text: str) -> str:
    return "\n".join(f"{_QUOTE}{line}".rstrip() for line in text.strip().splitlines())


def _unquote(text: str) -> str:
    return "\n".join(line[1:].removeprefix(" ") for line in text.splitlines())
