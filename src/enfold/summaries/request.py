"""The interface of summarizers: the request, the summary, and the transcript of messages.

A summarizer, a model behind the gateway or the built-in `local` one, takes a `SummaryRequest` and
returns a `Summary`, or raises `SummaryError`. A summary is never empty.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from enfold.amounts import add
from enfold.errors import ConfigError, SummaryError
from enfold.history import cut_points
from enfold.jsontext import dump_text
from enfold.messages import Attachment, Data, Message, Part, Text, ToolCall, ToolResult
from enfold.summaries.fence import escape, readings
from enfold.tokens import compute_async, get

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
    follows_opening: bool = False
    """True if a person's message before these stays in the view, which states the purpose."""
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
    is_checked: bool = False
    """True if the summarizer made sure that the text is a summary of the request's input."""
    parts: int = 1
    """Number of parts in which the input was read."""

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
    return escape(unescaped_transcript(messages))


def unescaped_transcript(messages: Iterable[Message]) -> str:
    """Return the messages as text, to estimate its size; it is safe in no fence."""
    tools: dict[str, str] = {}
    blocks: list[str] = []
    day = ""
    for message in messages:
        block = _block(message, tools)
        if block and message.at is not None and day_of(message) != day:
            day = day_of(message)
            block = f"[{day}]\n{block}"
        blocks.append(block)
    return "\n\n".join(block for block in blocks if block)


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
_LONGEST_SUMMARY = 4
_LONGEST_RECENT = 8
"""Divisors: a summary takes at most 1/4 of the input, recent messages at most 1/8."""


def divide(request: SummaryRequest, max_input: int | None) -> list[SummaryRequest]:
    """Return the requests that the summarizer is given one after the other. None is no limit.

    Each continues the summary that the one before gives. If there are several, only the last one
    has recent messages.
    """
    if max_input is None:
        return [request]
    messages, sizes = request.messages, _sizes(request.messages, request)
    if sum(sizes) <= input_budget(request, max_input):
        return [request]
    request = fit(request, max_input)
    budget = part_budget(request, max_input)
    messages = tuple(part for message in messages for part in _slices(message, budget))
    sizes = _sizes(messages, request)
    divided = [messages[first:last] for first, last in runs(messages, sizes, budget)]
    *parts, last = (replace(request, messages=piece) for piece in divided)
    return [*(replace(part, recent=()) for part in parts), last]


def fit(request: SummaryRequest, max_input: int) -> SummaryRequest:
    """Return the request with a shorter summary and fewer recent messages, if it has too many."""
    left, recent = max_input // _LONGEST_RECENT, 0
    for tokens in reversed(_sizes(request.recent, request)):
        left -= tokens
        if left < 0:
            break
        recent += 1
    return replace(
        request,
        max_tokens=min(request.max_tokens, max(1, max_input // _LONGEST_SUMMARY)),
        recent=request.recent[len(request.recent) - recent :],
    )


def input_budget(request: SummaryRequest, max_input: int) -> int:
    """Return the tokens of messages in one request, next to everything else that it contains."""
    others = (request.previous or "", request.draft or "", *request.missing, *request.invented)
    taken = sum(get(request.tokenizer).count_many(others))
    taken += sum(_sizes(request.recent, request))
    return max(_MIN_INPUT, max_input - request.max_tokens - taken - _INSTRUCTION_TOKENS)


def part_budget(request: SummaryRequest, max_input: int) -> int:
    """Return the tokens of messages in one of several parts.

    A later part also has the summary of those before it, which may be somewhat over its limit.
    """
    return max(_MIN_INPUT, input_budget(request, max_input) - request.max_tokens * 3 // 2)


def _sizes(messages: Iterable[Message], request: SummaryRequest) -> Sequence[int]:
    """Return the tokens of each message in a transcript."""
    return get(request.tokenizer).count_many([transcript((each,)) for each in messages])


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
# of a small model: every call restarts the limit, and a part that is written is kept.

OnPart: TypeAlias = Callable[[int, int], None]
"""Called with the number of the part that begins, and the number of all parts."""


class KeptParts(Protocol):
    """The summaries that were written for a compression which is not complete."""

    async def get(self, key: str) -> Summary | None:
        """Return a part that was written before; None if it was not."""
        ...

    async def keep(self, key: str, summary: Summary) -> None:
        """Keep a part until the compression is complete."""
        ...


@dataclass(frozen=True, slots=True)
class CallWatch:
    """The time limit of calls, and the parts that are begun and done."""

    limit: asyncio.Timeout
    seconds: float | None
    on_part: OnPart | None
    parts: KeptParts | None


_CURRENT: ContextVar[CallWatch | None] = ContextVar("call_watch", default=None)


@asynccontextmanager
async def watch_calls(
    seconds: float | None, on_part: OnPart | None, parts: KeptParts | None = None
) -> AsyncIterator[asyncio.Timeout]:
    """Raise `TimeoutError` if a call takes longer than that. None is no limit."""
    async with asyncio.timeout(seconds) as limit:
        token = _CURRENT.set(CallWatch(limit, seconds, on_part, parts))
        try:
            yield limit
        finally:
            _CURRENT.reset(token)


def begin_call() -> None:
    """Restart the time limit for the next call."""
    watch = _CURRENT.get()
    if watch is not None and watch.seconds is not None and not watch.limit.expired():
        watch.limit.reschedule(asyncio.get_running_loop().time() + watch.seconds)


def _key_of(author: str, request: SummaryRequest) -> str:
    return blake2b(repr((author, request)).encode(), digest_size=16).hexdigest()


async def summarize_parts(
    author: str,
    parts: Sequence[SummaryRequest],
    write: Callable[[SummaryRequest], Awaitable[Summary]],
) -> Summary:
    """Return the summary of the last part, which continues those of all others.

    Its notes are those of all parts, its cost too. Parts that an earlier attempt wrote are not
    written again, and cost nothing.
    """
    watch, summary = _CURRENT.get(), None
    stored = None if watch is None else watch.parts
    costs: list[float | None] = []
    notes: list[str] = []
    read = 0
    for number, part in enumerate(parts, 1):
        request = part if summary is None else replace(part, previous=summary.text)
        key = await compute_async(_key_of, author, request) if stored is not None else ""
        kept = await stored.get(key) if stored is not None else None
        if kept is None:
            if watch is not None and watch.on_part is not None:
                watch.on_part(number, len(parts))
            try:
                summary = await write(request)
            except SummaryError as error:
                error.cost = add([*costs, error.cost])
                raise
            # The built-in summarizer may have taken the place of a model, which is asked again.
            if stored is not None and (summary.author == author or summary.usage is not None):
                await stored.keep(key, summary)
        else:
            summary = kept
        costs.append(summary.cost)
        notes += summary.notes
        read += summary.parts
    if summary is None:
        raise SummaryError("there is nothing to summarize")
    return replace(summary, cost=add(costs), notes=tuple(dict.fromkeys(notes)), parts=read)


HEADING = "## The user's own words, still in force"
_HEADING_MARKS = "#*_=~ \t\N{FULLWIDTH NUMBER SIGN}"
_QUOTE = "> "
_SECTION = re.compile(
    rf"\n*^{re.escape(HEADING)}\n\n(?P<quotes>(?:^>[^\n]*\n?|^\n(?=>))+)\Z", re.MULTILINE
)
_FORGED = re.compile(r"users?ownwords?")
"""Letters of a line that looks like the heading."""


def add_words(summary: str, words: Iterable[str]) -> str:
    """Return the summary with the words quoted at its end, each once.

    Lines of the summary that look like the heading of this section are marked as quoted.
    """
    body = "\n".join(map(_without_heading, summary.strip().splitlines()))
    quotes = [_quote(text) for text in dict.fromkeys(words) if text.strip()]
    return "\n\n".join((body, HEADING, *quotes)) if quotes else body


def _without_heading(line: str) -> str:
    """Return the line, marked as quoted if it looks like the heading of the user's words."""
    is_forged = any(_FORGED.search(re.sub("[^a-z]", "", each)) for each in readings(line))
    return f"(quoted) {line.strip(_HEADING_MARKS)}" if is_forged else line


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
