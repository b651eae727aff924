"""Summarization: LangMem's two functions, with its parameters, defaults and outcomes.

What is new has a default that changes nothing: `fold_in_sequence`, `enforce`, `memory_flush_hook`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable

from enfold.flush.hooks import Hook
from enfold.langgraph.asking import aask, ask
from enfold.langgraph.counting import TokenCounter, count_tokens
from enfold.langgraph.folding import summarization
from enfold.langgraph.options import Options
from enfold.langgraph.prompts import (
    DEFAULT_EXISTING_SUMMARY_PROMPT,
    DEFAULT_FINAL_SUMMARY_PROMPT,
    DEFAULT_INITIAL_SUMMARY_PROMPT,
)
from enfold.langgraph.running import RunningSummary, SummarizationResult


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
    fold_in_sequence: bool = False,
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
        fold_in_sequence: What is more than the model is given at once is summarized in several
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
    options = Options(
        max_tokens=max_tokens,
        max_tokens_before_summary=max_tokens_before_summary,
        max_summary_tokens=max_summary_tokens,
        token_counter=token_counter,
        initial_summary_prompt=initial_summary_prompt,
        existing_summary_prompt=existing_summary_prompt,
        final_prompt=final_prompt,
        fold_in_sequence=fold_in_sequence,
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
    fold_in_sequence: bool = False,
    enforce: bool = False,
    memory_flush_hook: Hook | None = None,
) -> SummarizationResult:
    """`summarize_messages`, without holding up the event loop while the model writes."""
    options = Options(
        max_tokens=max_tokens,
        max_tokens_before_summary=max_tokens_before_summary,
        max_summary_tokens=max_summary_tokens,
        token_counter=token_counter,
        initial_summary_prompt=initial_summary_prompt,
        existing_summary_prompt=existing_summary_prompt,
        final_prompt=final_prompt,
        fold_in_sequence=fold_in_sequence,
        enforce=enforce,
        memory_flush_hook=memory_flush_hook,
    )
    return await aask(model, summarization(messages, running_summary, options))
