"""Options: how far a graph's messages are folded, and with which words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from langchain_core.runnables import Runnable

from enfold.flush.hooks import Hook
from enfold.langgraph.counting import TokenCounter


@dataclass(frozen=True, slots=True)
class Options:
    """What `summarize_messages` is told beside the messages and the model."""

    max_tokens: int
    max_tokens_before_summary: int | None
    max_summary_tokens: int
    token_counter: TokenCounter
    initial_summary_prompt: Runnable[dict[str, Any], Any]
    existing_summary_prompt: Runnable[dict[str, Any], Any]
    final_prompt: Runnable[dict[str, Any], Any]
    fold_in_sequence: bool
    enforce: bool
    memory_flush_hook: Hook | None

    def __post_init__(self) -> None:
        if self.max_summary_tokens >= self.max_tokens:
            raise ValueError(
                f"max_summary_tokens is {self.max_summary_tokens}, and must be less than "
                f"max_tokens, which is {self.max_tokens}"
            )

    @classmethod
    def of(cls, node: object) -> Options:
        """The options that a node has as its attributes, which a program may have changed."""
        return cls(**{field.name: getattr(node, field.name) for field in fields(cls)})

    @property
    def trigger(self) -> int:
        """From so many tokens on there is something to summarize; reaching it is enough."""
        before = self.max_tokens_before_summary
        return self.max_tokens if before is None else before

    @property
    def room(self) -> int:
        """What all messages but the summary may take together."""
        return self.max_tokens - self.max_summary_tokens
