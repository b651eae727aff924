"""Model configs: a model's limits and defaults, as the database keeps them.

The shipped rows are the seed of a new database. `max_input` is what a request may hold:
the window without the reply.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from enfold.budget import DEFAULT_THRESHOLD, Limits, Threshold
from enfold.errors import ConfigError
from enfold.retention import DEFAULT_RETENTION_TOKENS
from enfold.tokens import correction

Source: TypeAlias = Literal["api", "library", "manual", "default"]
"""The source of a limit: the provider, the metadata library, a person, or none."""

OwnValue: TypeAlias = Literal["threshold", "retention_tokens"]
OWN_VALUES: tuple[OwnValue, ...] = get_args(OwnValue)
"""The values that have a setting for all models too."""

FALLBACK_MAX_INPUT = 128_000
FALLBACK_MAX_OUTPUT = 4_096
_REPLY_SHARE = 8
"""The share of a smaller window that is reserved for the reply: one part in so many."""
LARGEST = 10**12
"""Far beyond any model, and small enough for a database column."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The limits and defaults of a model."""

    id: str
    """`provider:model`."""
    max_input: int
    """The largest input, in the model's tokens."""
    max_output: int
    """The longest reply, in the model's tokens."""
    threshold: float = DEFAULT_THRESHOLD
    """The share of the limit at which a compression is due."""
    retention_tokens: int = DEFAULT_RETENTION_TOKENS
    """The number of recent tokens kept verbatim."""
    tokenizer: str = "o200k_base"
    """The tokenizer that counts for the model."""
    correction: float = 1.0
    """The model's tokens for one counted token."""
    source: Source = "default"
    """The origin of these values: `api`, `library`, `manual` or `default`."""
    own: tuple[OwnValue, ...] = ()
    """The values that were set for this model; they beat settings for all models."""

    def __post_init__(self) -> None:
        provider, colon, model = self.id.partition(":")
        if not (provider and colon and model):
            raise ConfigError(f"model {self.id!r}: expected provider:model")
        Threshold(self.threshold, f"model {self.id}")
        for name, value, lowest in (
            ("max_input", self.max_input, 1),
            ("max_output", self.max_output, 0),
            ("retention_tokens", self.retention_tokens, 0),
            ("correction", self.correction, 0.1),
        ):
            if not lowest <= value <= LARGEST:
                raise ConfigError(
                    f"model {self.id}: {name} is {value}, expected {lowest} to {LARGEST:,}"
                )

    @property
    def provider(self) -> str:
        """Before the colon."""
        return self.id.partition(":")[0]

    @property
    def model(self) -> str:
        """After the colon."""
        return self.id.partition(":")[2]

    def own_value(self, name: OwnValue) -> Any:
        """Return a value that was set for this model; None if it is only the usual one."""
        return getattr(self, name) if name in self.own else None

    def within(self, window: int | None) -> ModelConfig:
        """Return the config for a window, if that is smaller than the model's. None is no limit."""
        if window is None or window >= self.max_input + self.max_output:
            return self
        reply = min(self.max_output, window // _REPLY_SHARE)
        return replace(self, max_input=min(self.max_input, window - reply), max_output=reply)

    def stating(self, window: int | None = None, output: int | None = None) -> ModelConfig:
        """Return the config with limits that a person stated: the window, the longest reply."""
        whole = self.max_input + self.max_output if window is None else window
        reply = min(self.max_output, whole // 2) if output is None else output
        if reply >= whole:
            raise ConfigError(
                f"model {self.id}: the longest reply is {reply}, expected less than its window, "
                f"which is {whole}"
            )
        return replace(self, max_input=whole - reply, max_output=reply, source="manual")

    @property
    def limits(self) -> Limits:
        """For the budget."""
        return Limits(self.max_input, self.max_output, self.correction)


DEFAULT_MODEL = "openai:gpt-4o"
"""The model of sessions for which no other model is set."""
CHEAP_MODEL, DEAR_MODEL = "openai:gpt-4o-mini", "anthropic:claude-sonnet-4-5"
"""Two models whose prices differ widely, to compare costs with."""

SHIPPED = (
    ModelConfig("openai:gpt-5", 272_000, 128_000, retention_tokens=2_000),
    ModelConfig(DEFAULT_MODEL, 111_616, 16_384),
    ModelConfig(CHEAP_MODEL, 111_616, 16_384),
    ModelConfig("openai:gpt-4-turbo", 123_904, 4_096, tokenizer="cl100k_base"),
    *(
        ModelConfig(
            f"anthropic:{model}",
            max_input,
            max_output,
            retention_tokens=1_500,
            correction=correction("anthropic", model).factor,
        )
        for model, max_input, max_output in (
            ("claude-sonnet-4-5-20250929", 136_000, 64_000),
            ("claude-opus-4-1", 196_000, 4_096),
            ("claude-haiku-4-5", 136_000, 64_000),
            ("claude-3-5-sonnet-20241022", 191_808, 8_192),
            ("claude-3-opus-20240229", 196_000, 4_096),
            ("claude-3-haiku-20240307", 196_000, 4_096),
        )
    ),
    *(
        ModelConfig(
            f"google:{model}",
            983_041,
            65_535,
            0.98,
            retention_tokens=2_000,
            correction=correction("google", model).factor,
            own=("threshold",),
        )
        for model in ("gemini-2.5-pro", "gemini-2.5-flash")
    ),
)
"""The first rows of a new database."""
