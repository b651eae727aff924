"""The summarizer port: what a summarizer is given, and what it gives back.

Whoever writes summaries, a model behind the gateway or the built-in `local` one, takes a
`SummaryRequest` and returns a `Summary`, or raises `SummaryError`. Nothing is ever returned that
is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from enfold.errors import ConfigError
from enfold.messages import Message

Style: TypeAlias = Literal["default", "code", "concise", "detailed"]

TIGHTER = 0.75
"""Each retry aims at this share of the attempt before it."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What to fold, what is already folded, and how long the result may be."""

    messages: tuple[Message, ...]
    """To be folded, oldest first."""
    previous: str | None = None
    """The text of the summary that this one continues. None for the first."""
    recent: tuple[Message, ...] = ()
    """What comes after the cutoff: shows what matters now, is never summarized."""
    max_tokens: int = 1_000
    """The summary's limit, by `tokenizer`."""
    tokenizer: str = "o200k_base"
    style: Style = "default"
    prompt: str | None = None
    """A custom prompt in place of the style's. Only a model reads it."""
    tightness: int = 0
    """How many attempts were too long before this one."""

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ConfigError(f"max_tokens is {self.max_tokens}; a summary needs at least 1 token")
        if self.tightness < 0:
            raise ConfigError(f"tightness is {self.tightness}; it counts attempts from 0")

    @property
    def target(self) -> int:
        """The length to aim at: the limit, less with every attempt that was too long."""
        return max(1, int(self.max_tokens * TIGHTER**self.tightness))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a model reported of the call; None where it said nothing."""

    input_tokens: int | None = None
    """All that was read, from the provider's cache or not."""
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary and who wrote it."""

    text: str
    author: str
    """The summarizer's name, such as `local`."""
    tokens: int
    """Exact, by the request's tokenizer."""
    usage: Usage | None = None
    """None where no model was called."""
    cost: float | None = None
    """In US dollars. None is unknown; 0 where no model was called."""
    notes: tuple[str, ...] = ()
    """What there is to say of how it came about, such as that another was to write it."""

    def __post_init__(self) -> None:
        if self.usage is None and self.cost is None:
            object.__setattr__(self, "cost", 0.0)


class Summarizer(Protocol):
    """Writes summaries."""

    @property
    def name(self) -> str:
        """Recorded with every snapshot it writes."""
        ...

    @property
    def max_input(self) -> int | None:
        """How many tokens it can read at once, its answer included. None for any number."""
        ...

    async def summarize(self, request: SummaryRequest) -> Summary:
        """The summary of the request, or `SummaryError`."""
        ...
