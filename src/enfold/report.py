"""The report of a condensation, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from enfold.amounts import dollars, duration
from enfold.condensation import Step

PRELUDE = "lossless_prelude"
"""The step of the strategy smart that comes before its passes."""
_NAMES = {"native": "Native", "lossless": "Lossless", "truncation": "Truncation", "smart": "Smart"}


@dataclass(frozen=True, slots=True)
class Report:
    """The strategy, steps, sizes, duration and cost of a condensation."""

    strategy: str
    tokens_before: int
    tokens_after: int
    seconds: float
    steps: tuple[Step, ...] = ()
    operations: tuple[str, ...] = ()
    """Steps that ran and steps that were left out: `<id>_completed`, `skip_<id>`."""
    warnings: tuple[str, ...] = ()
    cost: float | None = None
    """Of the condensation, in US dollars. None is unknown; without a model it is 0."""
    saved: float | None = None
    """With every later request, in US dollars. None is unknown."""

    @property
    def reduction(self) -> float:
        """The share of the tokens that is gone."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "strategy": self.strategy,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "reduction": self.reduction,
            "seconds": self.seconds,
            "cost": self.cost,
            "saved": self.saved,
            "operations": list(self.operations),
            "steps": [step.as_json() for step in self.steps],
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        name = _NAMES.get(self.strategy, self.strategy)
        done = f"Condensed with the {name} strategy:" if name else "Nothing was condensed:"
        return "\n".join((done, *self._lines()))

    def _lines(self) -> Iterator[str]:
        passes = 0
        for step in self.steps:
            name = _spoken(step.name)
            if self.strategy == "smart" and step.name != PRELUDE:
                passes += 1
                name = f"Pass {passes} ({name})"
            change = _change(step.tokens_before, step.tokens_after, step.reduction)
            yield f" - {name}: {change}"
            for operation, tokens in step.saved_by.items():
                yield f"   - {_spoken(operation)}: {-tokens:+,} tokens"
        last = self.steps[-1].tokens_after if self.steps else self.tokens_after
        if self.tokens_after > last:
            # A target is filled: what fits beside the summary stays.
            yield f" - Content that fits the target stays: {last:,} → {self.tokens_after:,} tokens"
        yield f" - {self._total()}"
        yield f" - Cost: {dollars(self.cost)}"
        yield f" - Time: {duration(self.seconds)}"
        if self.operations:
            yield f" - Operations: {', '.join(self.operations)}"
        yield from (f" - Warning: {warning}" for warning in self.warnings)

    def _total(self) -> str:
        tokens = f"{self.tokens_before:,} → {self.tokens_after:,} tokens"
        saved = "" if self.saved is None else f" (saved {dollars(self.saved)} a request)"
        return f"Total reduction: {self.reduction:.0%}, {tokens}{saved}"


def author_name(author: str) -> str:
    """Return the name of a summary's author for people."""
    return "the built-in summarizer" if author == "local" else author


def _change(before: int, after: int, reduction: float) -> str:
    return (
        f"{before:,} → {after:,} tokens ({-reduction:+.0%})"
        if before != after
        else (f"{before:,} tokens, unchanged")
    )


def _spoken(name: str) -> str:
    """A step's name as the start of a line: `lossless_prelude` is `Lossless prelude`."""
    words = name.replace("_", " ").strip()
    return words[:1].upper() + words[1:]
