"""Runs: what one compression by hand is told; what it is not told is as it is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from enfold.summaries import Style

Keeping: TypeAlias = Literal["as_set", "tokens", "messages"]

KEEPINGS: Mapping[Keeping, str] = {
    "as_set": "As much as is set",
    "tokens": "So many tokens",
    "messages": "So many messages",
}
SUGGESTED: Mapping[Keeping, int] = {"as_set": 0, "tokens": 1_000, "messages": 10}
"""How much of each is suggested."""
STYLES: tuple[str, ...] = get_args(Style)


@dataclass(frozen=True, slots=True)
class Run:
    """One compression."""

    keep: Keeping = "as_set"
    amount: int | None = 0
    """How much of the newest part stays. None while that is not a number."""
    strategy: str | None = None
    style: str | None = None
    prompt: str | None = None

    @property
    def fault(self) -> str:
        """Why it cannot be done. Empty if it can."""
        if self.keep != "as_set" and (self.amount is None or self.amount < 0):
            return f"How many {self.keep} are to stay? 0 or more."
        return ""

    def arguments(self) -> dict[str, Any]:
        """What `Session.compress` and `Session.preview` are called with."""
        given: dict[str, Any] = {}
        if self.keep != "as_set":
            given[f"keep_{self.keep}"] = self.amount
        said = {"strategy": self.strategy, "style": self.style, "prompt": self.prompt}
        return given | {name: value for name, value in said.items() if value}


AS_SET = Run()
