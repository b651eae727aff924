"""Summarization: LangMem's two functions, with its parameters, defaults and outcomes.

The parameters `summarize_in_parts`, `enforce` and `memory_flush_hook` are additions; their defaults
change nothing.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import accumulate
from typing import Any, TypeAlias

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    MessageLikeRepresentation,
    SystemMessage,
)
from langchain_core.messages.utils import convert_to_messages, trim_messages
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config, set_config_context
from langgraph.checkpoint.serde import _msgpack
from langgraph.constants import TAG_NOSTREAM

from enfold import tokens
from enfold.errors import SummaryError, UncompressibleError
from enfold.flush import Hook, hand_over
from enfold.messages import Message, text_of
from enfold.retention import Retention, Split, split
from enfold.summaries import fence
from enfold.summaries.request import runs
from enfold.wire.langchain import parse_message


@dataclass(slots=True)
class RunningSummary:
    """The summary so far, and which messages it stands for.

    Not frozen, because LangMem's is not and programs change it.
    """

    summary: str
    summarized_message_ids: set[str]
    """All that were ever summarized on this branch."""
    last_summarized_message_id: str | None
    first_summarized_message_id: str | None = None
    """True if the messages of a branch that was cut back can be summarized again."""

    def __post_init__(self) -> None:
        self.summarized_message_ids = set(self.summarized_message_ids)

    def as_json(self) -> dict[str, Any]:
        """Return the value in plain JSON types; `from_any` reads it."""
        return {**asdict(self), "summarized_message_ids": sorted(self.summarized_message_ids)}

    @classmethod
    def from_any(cls, value: Any) -> RunningSummary | None:
        """The summary in a state: of this class, of LangMem's, or as the dict of either.

        LangMem's is found in checkpoints that were written before the import was changed, and comes
        as a dict where LangMem is no longer installed.
        """
        if value is None or isinstance(value, cls):
            return value
        names = (field.name for field in fields(cls))
        values = (
            value if isinstance(value, Mapping) else {n: getattr(value, n, None) for n in names}
        )
        summary, ids = values.get("summary"), values.get("summarized_message_ids")
        if not isinstance(summary, str) or ids is None:
            raise ValueError(
                f"expected a RunningSummary, found {type(value).__name__}; give what the last "
                "summarization returned, or None"
            )
        last = values.get("last_summarized_message_id")
        return cls(summary, set(ids), last, values.get("first_summarized_message_id"))


@dataclass(slots=True)
class SummarizationResult:
    """The messages to send, and the running summary for the next turn."""

    messages: list[AnyMessage]
    """The summary, if there is one, and the messages that it does not stand for."""
    running_summary: RunningSummary | None = None


# LangGraph's checkpointers have a list of types that are safe to load, and no way to add to it for
# those that somebody else makes. Without this, loading logs a warning, or gives a dict in strict
# mode.
_SAFE = getattr(_msgpack, "SAFE_MSGPACK_TYPES", None)
if isinstance(_SAFE, frozenset):
    _msgpack.SAFE_MSGPACK_TYPES = _SAFE | {(RunningSummary.__module__, RunningSummary.__name__)}


TokenCounter: TypeAlias = Callable[[list[BaseMessage]], int]


def count_tokens(messages: Iterable[MessageLikeRepresentation]) -> int:
    """Return the tokens of the messages by `cl100k_base`.

    If no tokenizer loads, a quarter of the characters is the estimate, with one warning.
    """
    tokenizer = tokens.get("cl100k_base", fallback="chars4")
    parsed = [parse_message(message) for message in convert_to_messages(list(messages))]
    return sum(tokens.count_messages(parsed, tokenizer))


@dataclass(frozen=True, slots=True)
class SummarizationOptions:
    """The options of `summarize_messages`."""

    max_tokens: int
    max_tokens_before_summary: int | None
    max_summary_tokens: int
    token_counter: TokenCounter
    initial_summary_prompt: Runnable[dict[str, Any], Any]
    existing_summary_prompt: Runnable[dict[str, Any], Any]
    final_prompt: Runnable[dict[str, Any], Any]
    summarize_in_parts: bool
    enforce: bool
    memory_flush_hook: Hook | None

    def __post_init__(self) -> None:
        if self.max_summary_tokens >= self.max_tokens:
            raise ValueError(
                f"max_summary_tokens is {self.max_summary_tokens}, and must be less than "
                f"max_tokens, which is {self.max_tokens}"
            )

    @classmethod
    def of(cls, node: object) -> SummarizationOptions:
        """Return the options from a node's attributes, which a program may have changed."""
        return cls(**{field.name: getattr(node, field.name) for field in fields(cls)})

    @property
    def trigger(self) -> int:
        """Number of tokens from which on messages are summarized."""
        before = self.max_tokens_before_summary
        return self.max_tokens if before is None else before

    @property
    def room(self) -> int:
        """The most tokens of all messages but the summary."""
        return self.max_tokens - self.max_summary_tokens


DEFAULT_INITIAL_SUMMARY_PROMPT = ChatPromptTemplate.from_messages(
    [("placeholder", "{messages}"), ("user", "Create a summary of the conversation above:")]
)
_EXTEND = (
    "This is the summary of the messages before the ones above: {existing_summary}\n\n"
    "Extend this summary with what the messages above add or change:"
)
DEFAULT_EXISTING_SUMMARY_PROMPT = ChatPromptTemplate.from_messages(
    [("placeholder", "{messages}"), ("user", _EXTEND)]
)
DEFAULT_FINAL_SUMMARY_PROMPT = ChatPromptTemplate.from_messages(
    [
        ("placeholder", "{system_message}"),
        ("system", "Summary of the conversation so far: {summary}"),
        ("placeholder", "{messages}"),
    ]
)

ATTEMPTS = 3
"""Maximum number of requests for a summary that does not fit what is reserved for it."""
TIGHTER = (
    "That summary takes {tokens} tokens, and there is room for {limit}. Write it again, shorter: "
    "keep names, numbers, decisions and what is still open; leave out how things were said."
)

_LOSS = (
    "more is summarized than max_tokens lets the model read at once: the oldest messages are left "
    "out of its input and of the summary; pass summarize_in_parts=True to summarize all of them in "
    "several calls"
)
_SIZE = (
    "messages and summary need more than max_tokens: too much must stay, or the summary is longer "
    "than max_summary_tokens; pass enforce=True to refuse that"
)


def _fenced(values: dict[str, Any]) -> list[BaseMessage]:
    summary = SystemMessage(fence(values["summary"]))
    return [*values["system_message"], summary, *values["messages"]]


FENCED_FINAL_SUMMARY_PROMPT: Runnable[dict[str, Any], list[BaseMessage]] = RunnableLambda(_fenced)
"""As `final_prompt`: the summary is fenced as reference, so nothing in it is an instruction."""


def fill(prompt: Runnable[dict[str, Any], Any], **values: Any) -> list[BaseMessage]:
    """Return the messages of a prompt with its placeholders filled in."""
    filled: Any = prompt.invoke(values)
    messages: Sequence[BaseMessage] = getattr(filled, "messages", filled)
    return list(messages)


@dataclass(frozen=True, slots=True)
class GraphMessages:
    """The messages of a state before a summarization."""

    system: tuple[BaseMessage, ...]
    """The system message that leads them; none, or one."""
    live: tuple[BaseMessage, ...]
    """Messages without a summary."""
    running: RunningSummary | None
    """The summary that applies to them."""


@dataclass(frozen=True, slots=True)
class MessageSelection:
    """The messages without a summary, divided."""

    summarized: tuple[BaseMessage, ...]
    kept: tuple[BaseMessage, ...]
    summarized_tokens: int
    kept_tokens: int
    is_due: bool
    """True if there are enough of them that some should be summarized."""


def read(
    messages: Sequence[BaseMessage],
    running: RunningSummary | None,
    final_prompt: Runnable[dict[str, Any], Any],
) -> GraphMessages:
    """Return the leading system message, the messages without a summary, and that summary."""
    applying = running if running is None or _applies(running, messages) else None
    shown: list[tuple[str, Any]] = []
    if running is not None:  # the messages in which the last turn showed the summary
        filled = fill(final_prompt, system_message=[], summary=running.summary, messages=[])
        shown = [(message.type, message.content) for message in filled]
    own = [message for message in messages if (message.type, message.content) not in shown]
    leads = bool(own) and isinstance(own[0], SystemMessage)
    system, rest = (tuple(own[:1]), own[1:]) if leads else ((), own)
    return GraphMessages(system, tuple(_unsummarized(rest, applying)), applying)


def select(state: GraphMessages, options: SummarizationOptions) -> MessageSelection:
    """Select the oldest of the messages without a summary until the others fit."""
    live, count = state.live, options.token_counter
    counts = [count([message]) for message in live]
    total = count(list(live)) if live else 0
    room = options.room - (count(list(state.system)) if state.system else 0)
    trigger = options.trigger
    limit = room if state.running else room + options.max_summary_tokens
    if options.enforce and limit < total < trigger:
        trigger = 0  # the messages and the summary before them no longer fit
    wanted = _wanted(counts, total, trigger, room)
    if wanted == 0:
        return MessageSelection((), live, 0, sum(counts), is_due=False)
    parsed = [parse_message(message) for message in live]
    divided = _split(parsed, counts, wanted, room)
    if divided.kept:
        # The kept messages and the tail share the room.
        kept_tokens = sum(counts[index] for index in divided.kept)
        wanted = _wanted(counts, total, trigger, room - kept_tokens)
        divided = _split(parsed, counts, wanted, room)
    summarized = divided.summarized
    kept = sorted(set(range(len(live))).difference(summarized))
    return MessageSelection(
        tuple(live[index] for index in summarized),
        tuple(live[index] for index in kept),
        sum(counts[index] for index in summarized),
        sum(counts[index] for index in kept),
        is_due=True,
    )


def _split(messages: Sequence[Message], counts: Sequence[int], wanted: int, room: int) -> Split:
    """Return the legal split next to the wanted one."""
    policy = Retention("messages", len(messages) - wanted)
    return split(messages, counts, policy, room=max(0, room))


def _wanted(counts: Sequence[int], total: int, trigger: int, room: int) -> int:
    """Return how many of the oldest to summarize: the trigger is reached and the rest fits.

    If the rest never fits, because the system message alone is too large, it is all of them: the
    split still keeps the messages that must stay. 0 if the trigger is not reached.
    """
    sums = list(accumulate(counts))
    reached = [number for number, tokens in enumerate(sums, 1) if tokens >= trigger]
    fitting = (number for number in reached if total - sums[number - 1] <= room)
    return next(fitting, len(counts) if reached else 0)


def _applies(running: RunningSummary, messages: Sequence[BaseMessage]) -> bool:
    """Return True if the summary describes the past of these messages.

    It no longer does if the branch was cut back into the summarized messages: the summary would
    describe messages that are not on this branch. If the first summarized message is present, the
    messages are summarized again; otherwise the summary stays, because nothing else is left of the
    beginning.
    """
    present = {message.id for message in messages if message.id is not None}
    if running.last_summarized_message_id in present:
        return True
    return running.first_summarized_message_id not in present


def _unsummarized(
    messages: Sequence[BaseMessage], running: RunningSummary | None
) -> list[BaseMessage]:
    """Return the messages that the summary does not cover."""
    if any(message.id is None for message in messages):
        raise ValueError(
            "Messages are required to have ID field. Give each message an `id`, or let a graph's "
            "`add_messages` give it one."
        )
    if running is None:
        return list(messages)
    found = running.summarized_message_ids
    ids = [message.id for message in messages]
    last = running.last_summarized_message_id
    for id in ids[ids.index(last) + 1 :] if last in ids else ():
        if id in found:
            raise ValueError(
                f"Message with ID {id} has already been summarized, and is there again after the "
                "last summarized one. Give new messages ids of their own."
            )
    return [message for message in messages if message.id not in found]


Asking: TypeAlias = Generator[list[BaseMessage], Any, str]
"""Yields prompts, receives replies, and returns a summary."""
Summarization: TypeAlias = Generator[list[BaseMessage], Any, SummarizationResult]


def summarization(
    messages: Sequence[BaseMessage], running: Any, options: SummarizationOptions
) -> Summarization:
    """Run the steps of one summarization; yield no prompt if nothing is due."""
    before = RunningSummary.from_any(running)
    state = read(messages, before, options.final_prompt)
    if not state.live and state.running is before:
        return SummarizationResult(_as_list(messages), before)
    selection = select(state, options)
    _refuse_what_cannot_fit(state, selection, options)
    now = state.running
    if selection.summarized:
        text = yield from _write(state, selection, options)
        now = _remember(messages, state.running, selection, text)
        if options.memory_flush_hook is not None:
            hand_over(options.memory_flush_hook, selection.summarized)
    if now is None:
        return SummarizationResult(_as_list((*state.system, *selection.kept)))
    shown = fill(
        options.final_prompt,
        system_message=list(state.system),
        summary=now.summary,
        messages=list(selection.kept),
    )
    if selection.summarized and options.token_counter(shown) > options.max_tokens:
        _warn(_SIZE)
    return SummarizationResult(_as_list(shown), now)


def _as_list(messages: Sequence[BaseMessage]) -> list[Any]:
    """Return a list; its type is `Any`, because models and states accept other unions."""
    return list(messages)


def _refuse_what_cannot_fit(
    state: GraphMessages, selection: MessageSelection, options: SummarizationOptions
) -> None:
    """Raise `UncompressibleError` if the kept messages are too large, before a model is called."""
    if not (options.enforce and selection.is_due):
        return
    system = options.token_counter(list(state.system)) if state.system else 0
    if system + selection.kept_tokens > options.room:
        raise UncompressibleError(
            f"{system + selection.kept_tokens:,} tokens must stay verbatim, and there is room for "
            f"{options.room:,} beside a summary of {options.max_summary_tokens:,}: raise "
            "max_tokens, or shorten the system message or the user's last message"
        )


def _remember(
    messages: Sequence[BaseMessage],
    running: RunningSummary | None,
    selection: MessageSelection,
    text: str,
) -> RunningSummary:
    """Return the new summary with the ids that it covers.

    The user's last message stays, so it is summarized later than messages that came after it.
    """
    ids = {message.id for message in selection.summarized if message.id is not None}
    found = ids if running is None else ids | running.summarized_message_ids
    present = [message.id for message in messages if message.id in found]
    first = present[0] if running is None else running.first_summarized_message_id
    return RunningSummary(text, found, present[-1], first)


def _write(
    state: GraphMessages, selection: MessageSelection, options: SummarizationOptions
) -> Asking:
    """Write the summary of the selected messages, as a continuation of the current one."""
    text = None if state.running is None else state.running.summary
    for piece in _pieces(text, selection, options):
        text = yield from _write_piece(piece, text, options)
    if text is None:
        raise SummaryError("there is nothing to summarize")
    return text


def _write_piece(
    piece: Sequence[BaseMessage], existing: str | None, options: SummarizationOptions
) -> Asking:
    if existing is None:
        prompt = fill(options.initial_summary_prompt, messages=list(piece))
    else:
        prompt = fill(
            options.existing_summary_prompt, messages=list(piece), existing_summary=existing
        )
    for _ in range(ATTEMPTS):
        reply = yield prompt
        text = _text_of(reply)
        shown = fill(options.final_prompt, system_message=[], summary=text, messages=[])
        tokens = options.token_counter(shown)
        if not options.enforce or tokens <= options.max_summary_tokens:
            return text
        again = TIGHTER.format(tokens=tokens, limit=options.max_summary_tokens)
        prompt = [*prompt, AIMessage(text), HumanMessage(again)]
    raise SummaryError(
        f"the model's summary takes {tokens:,} tokens where {options.max_summary_tokens:,} are "
        f"reserved, also when asked {ATTEMPTS} times: raise max_summary_tokens, or bind a limit to "
        "the model"
    )


def _text_of(reply: Any) -> str:
    """Return the text of a model's reply, without its reasoning."""
    text = reply if isinstance(reply, str) else text_of(parse_message(reply).parts)
    if not text.strip():
        raise SummaryError(
            "the model returned no text; nothing was summarized, and the next turn tries again"
        )
    return text


def _pieces(
    existing: str | None, selection: MessageSelection, options: SummarizationOptions
) -> Sequence[Sequence[BaseMessage]]:
    """Return the parts that the model reads: one if all of it fits into `max_tokens`."""
    room = options.max_tokens
    if existing is not None:
        room -= options.token_counter([SystemMessage(existing)])
    if selection.summarized_tokens <= room:
        return [selection.summarized]
    if options.summarize_in_parts:
        messages = selection.summarized
        sizes = [options.token_counter([message]) for message in messages]
        parsed = [parse_message(message) for message in messages]
        # A unit that is too large is a part by itself.
        places = runs(parsed, sizes, min(room, options.room))
        return [messages[first:last] for first, last in places]
    return [_newest(selection.summarized, room, options)]


def _newest(
    messages: Sequence[BaseMessage], room: int, options: SummarizationOptions
) -> Sequence[BaseMessage]:
    """Return the newest messages that fit; all of them if none fits."""
    _warn(_LOSS)
    trimmed: list[BaseMessage] = trim_messages(
        list(messages),
        max_tokens=room,
        token_counter=options.token_counter,
        strategy="last",
        start_on="human",
        allow_partial=True,
    )
    return trimmed or messages


@cache  # each warning once for the process
def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


def ask(
    model: LanguageModelLike, steps: Summarization, config: RunnableConfig | None = None
) -> SummarizationResult:
    """Run the steps; errors of the model are raised."""
    step = _next(steps)
    while isinstance(step, list):
        with set_config_context(_quiet(config)) as context:
            reply = context.run(model.invoke, _as_list(step))
        step = _next(steps, reply)
    return step


async def aask(
    model: LanguageModelLike, steps: Summarization, config: RunnableConfig | None = None
) -> SummarizationResult:
    """Run the steps without blocking the event loop while the model writes."""
    step = _next(steps)
    while isinstance(step, list):
        with set_config_context(_quiet(config)) as context:
            reply = await asyncio.create_task(_reply(model, step), context=context)
        step = _next(steps, reply)
    return step


def _next(steps: Summarization, reply: Any = None) -> list[BaseMessage] | SummarizationResult:
    """Return the next prompt, or the result.

    The end of the steps is caught only here: a model may raise `StopIteration` itself.
    """
    try:
        return steps.send(reply)
    except StopIteration as end:
        result: SummarizationResult = end.value
        return result


async def _reply(model: LanguageModelLike, question: list[BaseMessage]) -> Any:
    return await model.ainvoke(_as_list(question))


def _quiet(config: RunnableConfig | None) -> RunnableConfig:
    found = ensure_config(config)
    return {**found, "tags": [*found.get("tags", []), TAG_NOSTREAM]}


def summarize_messages(  # noqa: PLR0913 - LangMem's parameters
    messages: Sequence[AnyMessage],
    *,
    running_summary: RunningSummary | None,
    model: LanguageModelLike,
    max_tokens: int,
    max_tokens_before_summary: int | None = None,
    max_summary_tokens: int = 256,
    token_counter: TokenCounter = count_tokens,
    initial_summary_prompt: Runnable[dict[str, Any], Any] = DEFAULT_INITIAL_SUMMARY_PROMPT,
    existing_summary_prompt: Runnable[dict[str, Any], Any] = DEFAULT_EXISTING_SUMMARY_PROMPT,
    final_prompt: Runnable[dict[str, Any], Any] = DEFAULT_FINAL_SUMMARY_PROMPT,
    summarize_in_parts: bool = False,
    enforce: bool = False,
    memory_flush_hook: Hook | None = None,
) -> SummarizationResult:
    """Summarize the oldest messages once all messages have too many tokens.

    Tool calls stay together with their results, and the user's last message stays verbatim. Errors
    of the model are raised; then nothing is summarized, and the next call tries again.

    Args:
        messages: All messages, each with an id. A leading system message is never summarized.
        running_summary: The last call's running summary, or None. Messages that it covers are
            skipped. If nothing new is summarized, it is shown again.
        model: Writes summaries. Its errors are raised unchanged.
        max_tokens: Maximum tokens of the result, and of the messages in one call of the model.
        max_tokens_before_summary: Number of tokens at which messages are summarized.
            `max_tokens` if None.
        max_summary_tokens: Tokens of `max_tokens` that are reserved for the summary. The model does
            not know them; bind a limit to it, or use `enforce`.
        token_counter: Counts messages. Exact by `cl100k_base` unless given.
        initial_summary_prompt: Prompt for the first summary; placeholder `messages`.
        existing_summary_prompt: Prompt for the next summary; also `existing_summary`.
        final_prompt: Form of the result; placeholders `system_message`, `summary` and `messages`.
        summarize_in_parts: Summarize messages that exceed one call in several calls. Otherwise
            the oldest of them are left out, as LangMem does, with one warning.
        enforce: Enforce the budgets: a summary over `max_summary_tokens` is requested again,
            shorter, and `SummaryError` is raised if that does not help; `UncompressibleError` is
            raised before a call if the messages that must stay are too large. Otherwise: one
            warning.
        memory_flush_hook: Receives the summarized messages in a thread of its own, after their
            summary is written. It may be a coroutine function; the call does not wait for it.

    Raises:
        ValueError: Messages without ids, an id that was summarized before and occurs again, or
            `max_summary_tokens` not below `max_tokens`.
        SummaryError: The model's reply has no text.
    """
    options = SummarizationOptions(
        max_tokens=max_tokens,
        max_tokens_before_summary=max_tokens_before_summary,
        max_summary_tokens=max_summary_tokens,
        token_counter=token_counter,
        initial_summary_prompt=initial_summary_prompt,
        existing_summary_prompt=existing_summary_prompt,
        final_prompt=final_prompt,
        summarize_in_parts=summarize_in_parts,
        enforce=enforce,
        memory_flush_hook=memory_flush_hook,
    )
    return ask(model, summarization(messages, running_summary, options))


async def asummarize_messages(  # noqa: PLR0913 - LangMem's parameters
    messages: Sequence[AnyMessage],
    *,
    running_summary: RunningSummary | None,
    model: LanguageModelLike,
    max_tokens: int,
    max_tokens_before_summary: int | None = None,
    max_summary_tokens: int = 256,
    token_counter: TokenCounter = count_tokens,
    initial_summary_prompt: Runnable[dict[str, Any], Any] = DEFAULT_INITIAL_SUMMARY_PROMPT,
    existing_summary_prompt: Runnable[dict[str, Any], Any] = DEFAULT_EXISTING_SUMMARY_PROMPT,
    final_prompt: Runnable[dict[str, Any], Any] = DEFAULT_FINAL_SUMMARY_PROMPT,
    summarize_in_parts: bool = False,
    enforce: bool = False,
    memory_flush_hook: Hook | None = None,
) -> SummarizationResult:
    """Run `summarize_messages` without blocking the event loop while the model writes."""
    options = SummarizationOptions(
        max_tokens=max_tokens,
        max_tokens_before_summary=max_tokens_before_summary,
        max_summary_tokens=max_summary_tokens,
        token_counter=token_counter,
        initial_summary_prompt=initial_summary_prompt,
        existing_summary_prompt=existing_summary_prompt,
        final_prompt=final_prompt,
        summarize_in_parts=summarize_in_parts,
        enforce=enforce,
        memory_flush_hook=memory_flush_hook,
    )
    return await aask(model, summarization(messages, running_summary, options))
