"""Asking: how a summarization's questions reach the model, blocking or not.

The calls are tagged so that a graph which streams its models' tokens does not show the summary
being written. The model is given one argument, as LangMem gives it; the tag travels in the context.
"""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context
from langgraph.constants import TAG_NOSTREAM

from enfold.langgraph.folding import Summarization
from enfold.langgraph.running import SummarizationResult


def ask(
    model: LanguageModelLike, steps: Summarization, config: RunnableConfig | None = None
) -> SummarizationResult:
    """Take the steps; what the model raises is raised."""
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
    known = ensure_config(config)
    return {**known, "tags": [*known.get("tags", []), TAG_NOSTREAM]}
