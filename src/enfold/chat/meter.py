"""The token meter: how full the context is, of what, and how sure the figures are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from enfold.engine import Status

WARM, FULL = 0.80, 0.95
"""Shares of the limit from which the bar is orange, and red."""

Level: TypeAlias = Literal["calm", "warm", "full"]
PartName: TypeAlias = Literal["system", "summary", "messages", "estimated"]

SIGNS: dict[PartName, str] = {"system": "▓", "summary": "▒", "messages": "█", "estimated": "░"}
"""What each part is drawn with, so that the bar can be read without colours."""
FREE = "·"


@dataclass(frozen=True, slots=True)
class Meter:
    """Tokens in use, part by part, of a limit."""

    system: int
    """Of the system prompt."""
    summary: int
    messages: int
    """Exact, as the others above."""
    estimated: int
    """Of what has no exact count: images, documents, opaque reasoning."""
    limit: int
    corrected: bool = False
    """The counts are another tokenizer's, and the limit allows for it."""

    @classmethod
    def of(cls, status: Status, window: int | None = None) -> Meter:
        """The meter of a session; of a smaller window, if one is given."""
        load = status.decision.load
        limit = status.decision.limit + load.reserved
        return cls(
            system=load.system + load.tools,
            summary=status.summary_tokens,
            messages=load.history - status.summary_tokens + load.pending,
            estimated=load.estimate,
            limit=max(1, limit if window is None else min(limit, window)),
            corrected=status.decision.correction != 1,
        )

    @property
    def parts(self) -> dict[PartName, int]:
        """What is in use, in the order it is sent."""
        return {
            "system": self.system,
            "summary": self.summary,
            "messages": self.messages,
            "estimated": self.estimated,
        }

    @property
    def used(self) -> int:
        """All of it."""
        return sum(self.parts.values())

    @property
    def share(self) -> float:
        """Of the limit; above 1 where it does not fit."""
        return self.used / self.limit

    @property
    def level(self) -> Level:
        """How urgent it is."""
        if self.share >= FULL:
            return "full"
        return "warm" if self.share >= WARM else "calm"

    @property
    def is_exact(self) -> bool:
        """True if nothing in it is an estimate."""
        return not self.estimated and not self.corrected

    def cells(self, width: int) -> dict[PartName, int]:
        """How many cells of a bar each part takes; what is there takes at least one if it can."""
        filled = min(width, max(round(self.share * width), int(self.used > 0)))
        there = {name: tokens for name, tokens in self.parts.items() if tokens}
        least = int(filled >= len(there))
        rest = filled - least * len(there)
        taken = {name: least + int(tokens / self.used * rest) for name, tokens in there.items()}
        for name in sorted(there, key=there.__getitem__, reverse=True):
            taken[name] += int(sum(taken.values()) < filled)
        return taken

    def words(self, width: int) -> str:
        """The figures, as many as fit into so many columns."""
        return next((line for line in self._lines() if len(line) <= width), f"{self.share:.0%}")

    def _lines(self) -> Iterator[str]:
        """From the most to the least that can be said."""
        about = "" if self.is_exact else "≈ "
        total = f"{about}{self.used:,} of {self.limit:,} tokens"
        there = [(name, tokens) for name, tokens in self.parts.items() if tokens]
        signed = " ".join(f"{SIGNS[name]} {name} {tokens:,}" for name, tokens in there)
        yield f"{total}  {signed}"
        yield f"{total}  " + " ".join(f"{SIGNS[name]} {tokens:,}" for name, tokens in there)
        yield total
        yield f"{about}{self.used:,} / {self.limit:,}"
