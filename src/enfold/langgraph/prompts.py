"""Prompts: what the model is told to write a summary, and how the summary is shown to it later.

The default wording, and where in it the messages stand, is what programs written for LangMem
expect to see. `FENCED_FINAL_SUMMARY_PROMPT` shows the summary as the rest of enfold does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from enfold.summaries import fence

DEFAULT_INITIAL_SUMMARY_PROMPT = ChatPromptTemplate.from_messages(
    [("placeholder", "{messages}"), ("user", "Create a summary of the conversation above:")]
)
_EXTEND = (
    "What was said before the messages above is summarized here: {existing_summary}\n\n"
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
