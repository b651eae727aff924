"""The node: `summarize_messages` as a step of a graph, with LangMem's parameters and state keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

from langchain_core.language_models import LanguageModelLike
from langchain_core.messages import AnyMessage, RemoveMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from enfold.flush import Hook
from enfold.langgraph.summarization import (
    DEFAULT_EXISTING_SUMMARY_PROMPT,
    DEFAULT_FINAL_SUMMARY_PROMPT,
    DEFAULT_INITIAL_SUMMARY_PROMPT,
    Summarization,
    SummarizationOptions,
    SummarizationResult,
    TokenCounter,
    aask,
    ask,
    count_tokens,
    summarization,
)

_CONTEXT = "context"
_RUNNING = "running_summary"


class SummarizationNode(Runnable[Any, dict[str, Any]]):
    """A node that summarizes a state's oldest messages; see `summarize_messages`.

    It reads `input_messages_key` and writes `output_messages_key`, and keeps its `RunningSummary`
    under `context`. If both keys are the same, the state's messages are replaced.
    """

    def __init__(  # noqa: PLR0913 - LangMem's parameters
        self,
        *,
        model: LanguageModelLike,
        max_tokens: int,
        max_tokens_before_summary: int | None = None,
        max_summary_tokens: int = 256,
        token_counter: TokenCounter = count_tokens,
        initial_summary_prompt: Runnable[dict[str, Any], Any] = DEFAULT_INITIAL_SUMMARY_PROMPT,
        existing_summary_prompt: Runnable[dict[str, Any], Any] = DEFAULT_EXISTING_SUMMARY_PROMPT,
        final_prompt: Runnable[dict[str, Any], Any] = DEFAULT_FINAL_SUMMARY_PROMPT,
        input_messages_key: str = "messages",
        output_messages_key: str = "summarized_messages",
        name: str = "summarization",
        summarize_in_parts: bool = False,
        enforce: bool = False,
        memory_flush_hook: Hook | None = None,
    ) -> None:
        self.name = name
        self.model = model
        self.max_tokens = max_tokens
        self.max_tokens_before_summary = max_tokens_before_summary
        self.max_summary_tokens = max_summary_tokens
        self.token_counter = token_counter
        self.initial_summary_prompt = initial_summary_prompt
        self.existing_summary_prompt = existing_summary_prompt
        self.final_prompt = final_prompt
        self.input_messages_key = input_messages_key
        self.output_messages_key = output_messages_key
        self.summarize_in_parts = summarize_in_parts
        self.enforce = enforce
        self.memory_flush_hook = memory_flush_hook

    def invoke(
        self,
        input: Any,  # noqa: A002 - as every Runnable calls it
        config: RunnableConfig | None = None,
        **kwargs: Any,  # noqa: ARG002 - as every Runnable takes them
    ) -> dict[str, Any]:
        """The update of the state."""
        messages, context = self._read(input)
        return self._update(context, ask(self.model, self._steps(messages, context), config))

    async def ainvoke(
        self,
        input: Any,  # noqa: A002 - as every Runnable calls it
        config: RunnableConfig | None = None,
        **kwargs: Any,  # noqa: ARG002 - as every Runnable takes them
    ) -> dict[str, Any]:
        """`invoke`, without holding up the event loop while the model writes."""
        messages, context = self._read(input)
        steps = self._steps(messages, context)
        return self._update(context, await aask(self.model, steps, config))

    def _read(self, state: Any) -> tuple[Sequence[AnyMessage], Mapping[str, Any]]:
        """Messages and context of a state: a dict, a pydantic model or a dataclass."""
        if isinstance(state, Mapping):
            messages, context = state.get(self.input_messages_key), state.get(_CONTEXT)
        elif hasattr(type(state), "model_fields") or is_dataclass(state):
            messages = getattr(state, self.input_messages_key, None)
            context = getattr(state, _CONTEXT, None)
        else:
            raise ValueError(
                f"Invalid input type: {type(state).__name__}; expected a dict, a pydantic model or "
                "a dataclass"
            )
        if messages is None:
            raise ValueError(f"Missing required field `{self.input_messages_key}` in the input.")
        return messages, context or {}

    def _steps(self, messages: Sequence[AnyMessage], context: Mapping[str, Any]) -> Summarization:
        return summarization(messages, context.get(_RUNNING), SummarizationOptions.of(self))

    def _update(self, context: Mapping[str, Any], result: SummarizationResult) -> dict[str, Any]:
        """Return the state update; a summary that no longer applies leaves the context."""
        if result.running_summary is None and context.get(_RUNNING) is None:
            return {self.output_messages_key: result.messages}
        messages: list[AnyMessage | RemoveMessage] = [*result.messages]
        if self.input_messages_key == self.output_messages_key:
            messages.insert(0, RemoveMessage(REMOVE_ALL_MESSAGES))
        return {
            self.output_messages_key: messages,
            _CONTEXT: {**context, _RUNNING: result.running_summary},
        }
