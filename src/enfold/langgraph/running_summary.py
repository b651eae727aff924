"""Running summaries: a graph's memory of its summarized messages between turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from langchain_core.messages import AnyMessage
from langgraph.checkpoint.serde import _msgpack


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
    """Says, where the branch was cut back, whether its messages can be summarized anew."""

    def __post_init__(self) -> None:
        self.summarized_message_ids = set(self.summarized_message_ids)

    def as_json(self) -> dict[str, Any]:
        """With nothing in it that JSON cannot say; `from_any` reads it."""
        return {
            "summary": self.summary,
            "summarized_message_ids": sorted(self.summarized_message_ids),
            "last_summarized_message_id": self.last_summarized_message_id,
            "first_summarized_message_id": self.first_summarized_message_id,
        }

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


def _let_checkpoints_load_it() -> None:
    """Add the class to those that LangGraph's checkpointers load without a warning.

    They have a list of types that are safe to make, and no way to add to it for checkpointers that
    somebody else makes. Without this, loading logs a warning, or gives a dict in strict mode.
    """
    values = getattr(_msgpack, "SAFE_MSGPACK_TYPES", None)
    if isinstance(values, frozenset):
        own = (RunningSummary.__module__, RunningSummary.__name__)
        _msgpack.SAFE_MSGPACK_TYPES = values | {own}


_let_checkpoints_load_it()
