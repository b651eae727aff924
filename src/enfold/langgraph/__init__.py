"""LangGraph: short-term memory for graphs, a drop-in for LangMem's.

Change the import and keep the rest: parameters, defaults, state keys and outcomes are LangMem's,
apart from what it gets wrong. Tool results stay with their calls, the user's last message stays
verbatim, an empty summary is refused, and a history that was cut back or trimmed is no error.
"""

from enfold.langgraph.node import SummarizationNode
from enfold.langgraph.summarization import (
    DEFAULT_EXISTING_SUMMARY_PROMPT,
    DEFAULT_FINAL_SUMMARY_PROMPT,
    DEFAULT_INITIAL_SUMMARY_PROMPT,
    FENCED_FINAL_SUMMARY_PROMPT,
    RunningSummary,
    SummarizationResult,
    TokenCounter,
    asummarize_messages,
    count_tokens,
    summarize_messages,
)

__all__ = [
    "DEFAULT_EXISTING_SUMMARY_PROMPT",
    "DEFAULT_FINAL_SUMMARY_PROMPT",
    "DEFAULT_INITIAL_SUMMARY_PROMPT",
    "FENCED_FINAL_SUMMARY_PROMPT",
    "RunningSummary",
    "SummarizationNode",
    "SummarizationResult",
    "TokenCounter",
    "asummarize_messages",
    "count_tokens",
    "summarize_messages",
]
