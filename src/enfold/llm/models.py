"""Models: the limits of a model that nobody has configured.

The metadata library knows the window of most models and the longest reply of none, so an eighth of
the window is set aside for the reply, within bounds. What it does not know gets the conservative
default, and is marked as such.
"""

from __future__ import annotations

from collections.abc import Iterator

from enfold.llm.library import find
from enfold.modelconfig import FALLBACK_MAX_INPUT, FALLBACK_MAX_OUTPUT, SHIPPED, ModelConfig, Source
from enfold.tokens import correction

_LARGEST_REPLY = 64_000
_REPLY_SHARE = 8
_CURRENT_PROVIDERS = ("openai", "anthropic", "google")


def detect(id: str) -> ModelConfig:
    """The config of `provider:model`: shipped, else from the library, else the default."""
    shipped = {config.id: config for config in SHIPPED}
    if id in shipped:
        return shipped[id]
    window = _window(id)
    if window is None:
        return _config(id, FALLBACK_MAX_INPUT, FALLBACK_MAX_OUTPUT, "default")
    return of_window(id, window)


def of_window(
    id: str, window: int, max_output: int | None = None, source: Source = "library"
) -> ModelConfig:
    """The config of a model whose window is known; its longest reply is set aside."""
    reply = _reply(window) if max_output is None else min(max_output, window // 2)
    return _config(id, window - reply, reply, source)


def current() -> Iterator[ModelConfig]:
    """Every model of the large providers whose window the library knows and that is in use."""
    from genai_prices.data_snapshot import get_snapshot

    shipped = {config.id for config in SHIPPED}
    for provider in get_snapshot().providers:
        if provider.id not in _CURRENT_PROVIDERS:
            continue
        for model in provider.models:
            id = f"{provider.id}:{model.id}"
            if model.context_window and not model.deprecated and id not in shipped:
                yield of_window(id, model.context_window)


def _reply(window: int) -> int:
    return min(window // 2, max(FALLBACK_MAX_OUTPUT, min(_LARGEST_REPLY, window // _REPLY_SHARE)))


def _window(id: str) -> int | None:
    provider, _, model = id.partition(":")
    info = find(provider, model)
    return info.context_window if info is not None else None


def _config(id: str, max_input: int, max_output: int, source: Source) -> ModelConfig:
    provider, _, model = id.partition(":")
    factor = correction(provider, model, "o200k_base").factor
    return ModelConfig(
        id,
        max_input,
        max_output,
        correction=factor,
        source=source,
    )
