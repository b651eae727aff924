"""Filling: how full a session's context is, of what, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from enfold.budget import Decision
from enfold.engine import Session
from enfold.engine.requests import Request
from enfold.engine.state import Level, decide_on, read_model, read_state, retention_of
from enfold.messages import Message, ToolCall, ToolResult
from enfold.modelconfig import ModelConfig
from enfold.retention import split
from enfold.store.database import Database
from enfold.store.records import SessionKey
from enfold.talk.meter import FULL, WARM
from enfold.ui.window import Window

PARTS: Mapping[str, str] = {
    "system": "System prompt and tools' definitions",
    "summary": "Summary",
    "messages": "Messages",
    "tools": "Tool calls and results",
    "estimated": "Estimated",
}
"""What the bar is made of, in the order it is drawn, and how each is called."""


@dataclass(frozen=True, slots=True)
class Fill:
    """How full a context is."""

    decision: Decision
    model: ModelConfig
    parts: Mapping[str, int]
    """Tokens, by the names of `PARTS`."""
    messages: int
    """In the whole branch."""
    kept: int
    """So many messages of the view would stay if it were compressed now."""
    foldable: int

    @property
    def used(self) -> int:
        """All that would be sent."""
        return sum(self.parts.values())

    @property
    def limit(self) -> int:
        """What it must fit into."""
        return max(1, self.decision.limit + self.decision.load.reserved)

    @property
    def share(self) -> float:
        """Of the limit; above 1 where it does not fit."""
        return self.used / self.limit

    @property
    def level(self) -> str:
        """`calm`, `warm` from 80 %, `full` from 95 %."""
        return "full" if self.share >= FULL else "warm" if self.share >= WARM else "calm"

    @property
    def is_exact(self) -> bool:
        """True if nothing in it is an estimate."""
        return not self.parts["estimated"] and self.decision.correction == 1

    @property
    def is_recommended(self) -> bool:
        """True if a compression would be a good idea, or must be."""
        return bool(self.foldable) and (self.decision.action != "keep" or self.level != "calm")


async def read_fill(window: Window, session: Session) -> Fill:
    """How full the session's context is; the counting is done beside the loop, not in it."""
    engine = window.engine
    id, known = await engine.store.read(read_model, session.key, engine.outside)
    model = known or await engine.models.get(id)
    return await engine.store.read(_fill, session.key, engine.outside, model)


def _fill(db: Database, key: SessionKey, outside: Sequence[Level], model: ModelConfig) -> Fill:
    state = read_state(db, key, {}, outside)
    view, decision = decide_on(state, model, Request())
    load = decision.load
    tools = sum(shown.tokens for shown in view.shown if _is_of_tools(shown.message))
    divided = split(
        view.messages, [shown.tokens for shown in view.shown], retention_of(state, model)
    )
    parts = {
        "system": load.system + load.tools + load.files,
        "summary": view.summary_tokens,
        "messages": load.history - view.summary_tokens - tools + load.pending,
        "tools": tools,
        "estimated": load.estimate,
    }
    folded = len(divided.folded)
    return Fill(decision, model, parts, state.rows.depth, len(view.shown) - folded, folded)


def _is_of_tools(message: Message) -> bool:
    return any(isinstance(part, ToolCall | ToolResult) for part in message.parts)
