"""The token meter: tokens in use by part, the limit, and a text bar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from enfold.engine import Status

WARM, FULL = 0.80, 0.95
"""Shares of the limit at which the bar turns orange and red."""

Level: TypeAlias = Literal["calm", "warm", "full"]
PartName: TypeAlias = Literal["system", "summary", "messages", "estimated"]

SIGNS: dict[PartName, str] = {"system": "▓", "summary": "▒", "messages": "█", "estimated": "░"}
"""One character per part, so that the bar is readable without colours."""
FREE = "·"


@dataclass(frozen=True, slots=True)
class Meter:
    """Tokens in use by part, and the limit."""

    system: int
    """Tokens of the system prompt and the tools."""
    summary: int
    messages: int
    """Counted exactly, like the two fields above."""
    estimated: int
    """Tokens of parts without an exact count: images, documents, opaque reasoning."""
    limit: int
    corrected: bool = False
    """True if another tokenizer counts and the limit is corrected, or a part is an estimate."""

    @classmethod
    def of(cls, status: Status, window: int | None = None, *, unstored: int = 0) -> Meter:
        """Return the meter of a session, with a smaller window if one is given.

        `unstored` is an estimate of the system prompt and the tools that only the client has.
        """
        load = status.decision.load
        limit = status.decision.limit + load.reserved
        return cls(
            system=load.system + load.tools + unstored,
            summary=status.summary_tokens,
            messages=load.history - status.summary_tokens + load.pending,
            estimated=load.estimate,
            limit=max(1, limit if window is None else min(limit, window)),
            corrected=status.decision.correction != 1 or bool(unstored),
        )

    @property
    def parts(self) -> dict[PartName, int]:
        """Tokens by part, in the order they are sent."""
        return {
            "system": self.system,
            "summary": self.summary,
            "messages": self.messages,
            "estimated": self.estimated,
        }

    @property
    def used(self) -> int:
        """The sum of all parts."""
        return sum(self.parts.values())

    @property
    def share(self) -> float:
        """The share of the limit in use; above 1 if it does not fit."""
        return self.used / self.limit

    @property
    def level(self) -> Level:
        """The colour level: calm, warm or full."""
        if self.share >= FULL:
            return "full"
        return "warm" if self.share >= WARM else "calm"

    @property
    def is_exact(self) -> bool:
        """True if no figure is an estimate."""
        return not self.estimated and not self.corrected

    def cells(self, width: int) -> dict[PartName, int]:
        """Return the bar cells of each part; a part in use gets at least one if they suffice."""
        filled = min(width, max(round(self.share * width), int(self.used > 0)))
        used = {name: tokens for name, tokens in self.parts.items() if tokens}
        least = int(filled >= len(used))
        rest = filled - least * len(used)
        taken = {name: least + int(tokens / self.used * rest) for name, tokens in used.items()}
        for name in sorted(used, key=used.__getitem__, reverse=True):
            taken[name] += int(sum(taken.values()) < filled)
        return taken

    def words(self, width: int) -> str:
        """Return the longest description that fits into `width` columns."""
        return next((line for line in self._lines() if len(line) <= width), f"{self.share:.0%}")

    def _lines(self) -> Iterator[str]:
        """Descriptions, from the longest to the shortest."""
        about = "" if self.is_exact else "≈ "
        total = f"{about}{self.used:,} of {self.limit:,} tokens"
        used = [(name, tokens) for name, tokens in self.parts.items() if tokens]
        signed = " ".join(f"{SIGNS[name]} {name} {tokens:,}" for name, tokens in used)
        yield f"{total}  {signed}"
        yield f"{total}  " + " ".join(f"{SIGNS[name]} {tokens:,}" for name, tokens in used)
        yield total
        yield f"{about}{self.used:,} / {self.limit:,}"
