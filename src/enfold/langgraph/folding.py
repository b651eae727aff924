"""Folding: one summarization from a state's messages to what is sent, whoever asks the model.

`summarization` is a generator: it yields what the model is to be asked and is sent the reply, so
that the blocking and the asynchronous function are the same steps. Nothing is remembered, and no
hook hears of it, before a usable summary of everything that is folded is there.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from functools import cache
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import trim_messages

from enfold.dialects.langchain import parse_message
from enfold.errors import SummaryError, UncompressibleError
from enfold.flush.hooks import hand_over
from enfold.langgraph.options import Options
from enfold.langgraph.prompts import TIGHTER, fill
from enfold.langgraph.running import RunningSummary, SummarizationResult
from enfold.langgraph.selection import Selection, Standing, read, select
from enfold.messages import text_of
from enfold.strategies.writing import ATTEMPTS
from enfold.summaries.sequence import runs

Asking: TypeAlias = Generator[list[BaseMessage], Any, str]
"""Yields what to ask, is sent replies, and comes to a summary."""
Summarization: TypeAlias = Generator[list[BaseMessage], Any, SummarizationResult]


def summarization(messages: Sequence[BaseMessage], running: Any, options: Options) -> Summarization:
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


def _refuse_what_cannot_fit(standing: Standing, selection: Selection, options: Options) -> None:
    """What must stay is counted before a model is asked for anything."""
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
    selection: Selection,
    text: str,
) -> RunningSummary:
    """The new summary with all that it stands for, first and last by their place in the state.

    A message that stayed behind as the last user's is folded later than those that came after it.
    """
    ids = {message.id for message in selection.folded if message.id is not None}
    known = ids if running is None else ids | running.summarized_message_ids
    present = [message.id for message in messages if message.id in known]
    first = present[0] if running is None else running.first_summarized_message_id
    return RunningSummary(text, known, present[-1], first)


def _write(standing: Standing, selection: Selection, options: Options) -> Asking:
    """The summary of all that is folded, on top of the one that applies."""
    text = None if standing.running is None else standing.running.summary
    for piece in _pieces(text, selection, options):
        text = yield from _write_piece(piece, text, options)
    if text is None:
        raise SummaryError("there is nothing to summarize")
    return text


def _write_piece(piece: Sequence[BaseMessage], existing: str | None, options: Options) -> Asking:
    if existing is None:
        asked = fill(options.initial_summary_prompt, messages=list(piece))
    else:
        asked = fill(
            options.existing_summary_prompt, messages=list(piece), existing_summary=existing
        )
    for _ in range(ATTEMPTS):
        reply = yield asked
        text = _text_of(reply)
        shown = fill(options.final_prompt, system_message=[], summary=text, messages=[])
        tokens = options.token_counter(shown)
        if not options.enforce or tokens <= options.max_summary_tokens:
            return text
        again = TIGHTER.format(tokens=tokens, limit=options.max_summary_tokens)
        asked = [*asked, AIMessage(text), HumanMessage(again)]
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
    existing: str | None, selection: Selection, options: Options
) -> Sequence[Sequence[BaseMessage]]:
    """What the model is given to read: all at once if it fits into `max_tokens`."""
    room = options.max_tokens
    if existing is not None:
        room -= options.token_counter([SystemMessage(existing)])
    if selection.folded_tokens <= room:
        return [selection.folded]
    if options.fold_in_sequence:
        return _runs(selection.folded, min(room, options.room), options)
    return [_newest(selection.folded, room, options)]


def _runs(
    messages: Sequence[BaseMessage], room: int, options: Options
) -> list[Sequence[BaseMessage]]:
    """The messages in runs that fit; a unit that is more than fits is a run of its own."""
    sizes = [options.token_counter([message]) for message in messages]
    parsed = [parse_message(message) for message in messages]
    return [messages[first:last] for first, last in runs(parsed, sizes, room)]


def _newest(messages: Sequence[BaseMessage], room: int, options: Options) -> Sequence[BaseMessage]:
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
        "left out of its input and so of the summary; pass fold_in_sequence=True to have all of "
        "them summarized, in several calls",
        RuntimeWarning,
        stacklevel=2,
    )


@cache
def _warn_of_size() -> None:
    warnings.warn(
        "messages and summary take more than max_tokens: what must stay is too large, or the "
        "summary is longer than max_summary_tokens; pass enforce=True to have that refused",
        RuntimeWarning,
        stacklevel=2,
    )
