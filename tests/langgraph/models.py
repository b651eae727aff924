"""A chat model that says what it is told to, and messages for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import ConfigDict, Field


class ScriptedModel(BaseChatModel):
    """Gives its replies one after the other, the last of them again and again."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    replies: list[Any] = Field(default_factory=lambda: ["A summary."])
    """Texts, messages, and errors to raise."""
    requests: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - as the base class has them
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> Iterator[ChatGenerationChunk]:
        for word in str(self._next(messages).content).split(" "):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
            if run_manager is not None:
                run_manager.on_llm_new_token(f"{word} ", chunk=chunk)
            yield chunk

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """It calls tools only where its script says so."""
        return self

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        self.requests.append(messages)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, AIMessage) else AIMessage(reply)


def scripted_model(*replies: Any) -> ScriptedModel:
    """A model with these replies."""
    return ScriptedModel(replies=list(replies)) if replies else ScriptedModel()


def chat(number: int, start: int = 1) -> list[AnyMessage]:
    """Return a number of messages of user and model in turn, with their numbers as ids."""
    return [
        HumanMessage(f"question {n}", id=str(n)) if n % 2 else AIMessage(f"answer {n}", id=str(n))
        for n in range(start, start + number)
    ]


def calls(id: str, *names: str) -> AIMessage:
    """A model's message that calls tools, all at once."""
    made = [{"name": "look", "args": {"at": name}, "id": name} for name in names]
    return AIMessage("", id=id, tool_calls=made)


def result(id: str, name: str, text: str = "found") -> ToolMessage:
    """Return the result of a tool."""
    return ToolMessage(text, id=id, tool_call_id=name)


def ids(messages: Sequence[BaseMessage]) -> list[str | None]:
    """The ids of the messages, None for a summary."""
    return [message.id for message in messages]
