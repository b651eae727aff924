"""Summarization: LangMem's two functions, with its parameters, defaults and outcomes.

What is new has a default that changes nothing: `summarize_in_parts`, `enforce` and
`memory_flush_hook`.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, fields
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
from langgraph.constants import TAG_NOSTREAM

from enfold import tokens
from enfold.errors import SummaryError, UncompressibleError
from enfold.flush import Hook, hand_over
from enfold.langgraph.running_summary import RunningSummary, SummarizationResult
from enfold.messages import Message, text_of
from enfold.retention import Retention, Split, split
from enfold.summaries import fence
from enfold.summaries.request import runs
from enfold.wire.langchain import parse_message

TokenCounter: TypeAlias = Callable[[list[BaseMessage]], int]


def count_tokens(messages: Iterable[MessageLikeRepresentation]) -> int:
    """The tokens of the messages by `cl100k_base`.

    Where no tokenizer can be loaded a quarter of the characters is taken instead, with one warning.
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
        """The options that a node has as its attributes, which a program may have changed."""
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


def _fenced(values: dict[str, Any]) -> list[BaseMessage]:
    summary = SystemMessage(fence(values["summary"]))
    return [*values["system_message"], summary, *values["messages"]]


FENCED_FINAL_SUMMARY_PROMPT: Runnable[dict[str, Any], list[BaseMessage]] = RunnableLambda(_fenced)
"""As `final_prompt`: the summary is fenced as reference, so nothing in it is an instruction."""


def fill(prompt: Runnable[dict[str, Any], Any], **values: Any) -> list[BaseMessage]:
    """The messages of a prompt with its placeholders filled in."""
    filled: Any = prompt.invoke(values)
    messages: Sequence[BaseMessage] = getattr(filled, "messages", filled)
    return list(messages)


@dataclass(frozen=True, slots=True)
class GraphMessages:
    """A state's messages, as a summarization finds them."""

    system: tuple[BaseMessage, ...]
    """The system message that leads them; none, or one."""
    live: tuple[BaseMessage, ...]
    """Those that no summary stands for."""
    running: RunningSummary | None
    """The summary that applies to them."""


@dataclass(frozen=True, slots=True)
class MessageSelection:
    """The live messages, divided."""

    folded: tuple[BaseMessage, ...]
    kept: tuple[BaseMessage, ...]
    folded_tokens: int
    kept_tokens: int
    is_due: bool
    """True if there are enough of them that some should be folded."""


def read(
    messages: Sequence[BaseMessage],
    running: RunningSummary | None,
    final_prompt: Runnable[dict[str, Any], Any],
) -> GraphMessages:
    """Return the leading system message, the messages without a summary, and that summary."""
    applying = running if running is None or _applies(running, messages) else None
    shown = _shown(running, final_prompt)
    own = [message for message in messages if (message.type, message.content) not in shown]
    leads = bool(own) and isinstance(own[0], SystemMessage)
    system, rest = (tuple(own[:1]), own[1:]) if leads else ((), own)
    return GraphMessages(system, tuple(_unsummarized(rest, applying)), applying)


def select(standing: GraphMessages, options: SummarizationOptions) -> MessageSelection:
    """The oldest of the live messages until what is left fits, if there are enough of them."""
    live, count = standing.live, options.token_counter
    counts = [count([message]) for message in live]
    total = count(list(live)) if live else 0
    room = options.room - (count(list(standing.system)) if standing.system else 0)
    trigger = options.trigger
    limit = room if standing.running else room + options.max_summary_tokens
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
    folded = divided.summarized
    kept = sorted(set(range(len(live))).difference(folded))
    return MessageSelection(
        tuple(live[index] for index in folded),
        tuple(live[index] for index in kept),
        sum(counts[index] for index in folded),
        sum(counts[index] for index in kept),
        is_due=True,
    )


def _split(messages: Sequence[Message], counts: Sequence[int], wanted: int, room: int) -> Split:
    """The division next to the wanted one that the rules allow."""
    policy = Retention("messages", len(messages) - wanted)
    return split(messages, counts, policy, room=max(0, room))


def _wanted(counts: Sequence[int], total: int, trigger: int, room: int) -> int:
    """How many of the oldest to fold: up to where the trigger is reached and the rest fits.

    Where the rest never fits, because the system message alone is too large, it is all of them: the
    rules about what must stay have the last word anyway. 0 if the trigger is not reached.
    """
    sums = list(accumulate(counts))
    reached = [number for number, tokens in enumerate(sums, 1) if tokens >= trigger]
    fitting = (number for number in reached if total - sums[number - 1] <= room)
    return next(fitting, len(counts) if reached else 0)


def _applies(running: RunningSummary, messages: Sequence[BaseMessage]) -> bool:
    """Return True if the summary describes the past of these messages.

    It no longer does where the branch was cut back into what was summarized: it would tell what
    never happened here. Then the messages themselves are still there to be summarized anew, if the
    first of them is; if it is not, the summary is all there is of the beginning, and stays.
    """
    present = {message.id for message in messages if message.id is not None}
    if running.last_summarized_message_id in present:
        return True
    return running.first_summarized_message_id not in present


def _shown(
    running: RunningSummary | None, final_prompt: Runnable[dict[str, Any], Any]
) -> list[tuple[str, Any]]:
    """How the turn before showed the summary: it may be among the messages now."""
    if running is None:
        return []
    shown = fill(final_prompt, system_message=[], summary=running.summary, messages=[])
    return [(message.type, message.content) for message in shown]


def _unsummarized(
    messages: Sequence[BaseMessage], running: RunningSummary | None
) -> list[BaseMessage]:
    """The messages that the summary does not stand for."""
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
"""Yields what to ask, is sent replies, and comes to a summary."""
Summarization: TypeAlias = Generator[list[BaseMessage], Any, SummarizationResult]


def summarization(
    messages: Sequence[BaseMessage], running: Any, options: SummarizationOptions
) -> Summarization:
    """The steps of one summarization; asks nothing where nothing is due."""
    before = RunningSummary.from_any(running)
    standing = read(messages, before, options.final_prompt)
    if not standing.live and standing.running is before:
        return SummarizationResult(_as_list(messages), before)
    selection = select(standing, options)
    _refuse_what_cannot_fit(standing, selection, options)
    now = standing.running
    if selection.folded:
        text = yield from _write(standing, selection, options)
        now = _remember(messages, standing.running, selection, text)
        if options.memory_flush_hook is not None:
            hand_over(options.memory_flush_hook, selection.folded)
    if now is None:
        return SummarizationResult(_as_list((*standing.system, *selection.kept)))
    shown = fill(
        options.final_prompt,
        system_message=list(standing.system),
        summary=now.summary,
        messages=list(selection.kept),
    )
    if selection.folded and options.token_counter(shown) > options.max_tokens:
        _warn_of_size()
    return SummarizationResult(_as_list(shown), now)


def _as_list(messages: Sequence[BaseMessage]) -> list[Any]:
    return list(messages)


def _refuse_what_cannot_fit(
    standing: GraphMessages, selection: MessageSelection, options: SummarizationOptions
) -> None:
    """Raise `UncompressibleError` if the kept messages are too large, before a model is called."""
    if not (options.enforce and selection.is_due):
        return
    system = options.token_counter(list(standing.system)) if standing.system else 0
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
    """The new summary with all that it stands for, first and last by their place in the state.

    A message that stayed behind as the last user's is folded later than those that came after it.
    """
    ids = {message.id for message in selection.folded if message.id is not None}
    found = ids if running is None else ids | running.summarized_message_ids
    present = [message.id for message in messages if message.id in found]
    first = present[0] if running is None else running.first_summarized_message_id
    return RunningSummary(text, found, present[-1], first)


def _write(
    standing: GraphMessages, selection: MessageSelection, options: SummarizationOptions
) -> Asking:
    """The summary of all that is folded, on top of the one that applies."""
    text = None if standing.running is None else standing.running.summary
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
    """The words of a model's reply: a text, or the text among its blocks; never its reasoning."""
    text = reply if isinstance(reply, str) else text_of(parse_message(reply).parts)
    if not text.strip():
        raise SummaryError(
            "the model gave no text as a summary; nothing was folded, and the next turn tries again"
        )
    return text


def _pieces(
    existing: str | None, selection: MessageSelection, options: SummarizationOptions
) -> Sequence[Sequence[BaseMessage]]:
    """Return the parts that the model reads: one if all of it fits into `max_tokens`."""
    room = options.max_tokens
    if existing is not None:
        room -= options.token_counter([SystemMessage(existing)])
    if selection.folded_tokens <= room:
        return [selection.folded]
    if options.summarize_in_parts:
        return _runs(selection.folded, min(room, options.room), options)
    return [_newest(selection.folded, room, options)]


def _runs(
    messages: Sequence[BaseMessage], room: int, options: SummarizationOptions
) -> list[Sequence[BaseMessage]]:
    """The messages in runs that fit; a unit that is more than fits is a run of its own."""
    sizes = [options.token_counter([message]) for message in messages]
    parsed = [parse_message(message) for message in messages]
    return [messages[first:last] for first, last in runs(parsed, sizes, room)]


def _newest(
    messages: Sequence[BaseMessage], room: int, options: SummarizationOptions
) -> Sequence[BaseMessage]:
    """The newest of the messages that fit; all of them where none does."""
    _warn_of_loss()
    trimmed: list[BaseMessage] = trim_messages(
        list(messages),
        max_tokens=room,
        token_counter=options.token_counter,
        strategy="last",
        start_on="human",
        allow_partial=True,
    )
    return trimmed or messages


@cache  # so that the process hears it once
def _warn_of_loss() -> None:
    warnings.warn(
        "more is summarized than max_tokens lets the model read at once: the oldest messages are "
        "left out of its input and so of the summary; pass summarize_in_parts=True to have all of "
        "them summarized, in several calls",
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def _warn_of_size() -> None:
    warnings.warn(
        "messages and summary take more than max_tokens: too much must stay, or the "
        "summary is longer than max_summary_tokens; pass enforce=True to have that refused",
        RuntimeWarning,
        stacklevel=2,
    )


def ask(
    model: LanguageModelLike, steps: Summarization, config: RunnableConfig | None = None
) -> SummarizationResult:
    """Run the steps; errors of the model are raised."""
    step = _next(steps)
    while isinstance(step, list):
        with set_config_context(_quiet(config)) as context:
            reply = context.run(model.invoke, _as_input(step))
        step = _next(steps, reply)
    return step


async def aask(
    model: LanguageModelLike, steps: Summarization, config: RunnableConfig | None = None
) -> SummarizationResult:
    """`ask`, without holding up the event loop while the model writes."""
    step = _next(steps)
    while isinstance(step, list):
        with set_config_context(_quiet(config)) as context:
            reply = await asyncio.create_task(_reply(model, step), context=context)
        step = _next(steps, reply)
    return step


def _next(steps: Summarization, reply: Any = None) -> list[BaseMessage] | SummarizationResult:
    """The next question, or the result.

    Only here the end of the steps is caught: a model may raise `StopIteration` on its own account.
    """
    try:
        return steps.send(reply)
    except StopIteration as end:
        result: SummarizationResult = end.value
        return result


async def _reply(model: LanguageModelLike, question: list[BaseMessage]) -> Any:
    return await model.ainvoke(_as_input(question))


def _as_input(question: list[BaseMessage]) -> Any:
    """A list of messages is what models take; its type says that any kind of message may be in."""
    return question


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
    """Fold the oldest messages into a summary once there are too many tokens of them.

    Tool calls stay together with their results, and the user's last message stays verbatim. What
    the model raises is raised; then nothing is folded, and the next call tries again.

    Args:
        messages: All of them, each with an id. A system message that leads them is never folded.
        running_summary: What the last call returned, or None. Messages that it stands for are
            passed over. If nothing new is folded, it is shown again.
        model: Writes summaries. An error of it is raised as it is.
        max_tokens: What the result should take at most, and what the model is given at once.
        max_tokens_before_summary: From how many tokens on there is something to fold; reaching it
            is enough. `max_tokens` if None.
        max_summary_tokens: How much of `max_tokens` is kept free for the summary. The model is not
            told; bind a limit to it, or see `enforce`.
        token_counter: Counts messages. Exact by `cl100k_base` unless given.
        initial_summary_prompt: Asks for the first summary; placeholder `messages`.
        existing_summary_prompt: Asks for the next; also `existing_summary`.
        final_prompt: What is returned; placeholders `system_message`, `summary` and `messages`.
        summarize_in_parts: What is more than the model is given at once is summarized in several
            calls. Otherwise the oldest of it is left out, as LangMem does, with one warning.
        enforce: Hold the budgets: a summary over `max_summary_tokens` is asked for again, shorter,
            and `SummaryError` if that does not help; `UncompressibleError`, before the model is
            asked, if what must stay is too large. Otherwise there is one warning.
        memory_flush_hook: Is given the messages that were folded, in a thread of its own, after
            their summary is there. It may be a coroutine function; nobody waits for it.

    Raises:
        ValueError: Messages without ids, an id that was summarized before and is there again, or
            `max_summary_tokens` not below `max_tokens`.
        SummaryError: The model's reply holds no text.
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
    """`summarize_messages`, without holding up the event loop while the model writes."""
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
