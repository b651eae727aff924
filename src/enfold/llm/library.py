"""The metadata library: which entry of it a provider's model is.

It is bundled, so nothing is fetched; it takes most of a second to load, so it is loaded late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

_LIBRARY_NAMES = {"bedrock": "aws", "vertex": "google", "gemini": "google"}
"""Providers that the library calls otherwise."""


def find(provider: str, model: str) -> ModelInfo | None:
    """The library's entry for a provider's model. None if it has none."""
    from genai_prices.data_snapshot import get_snapshot

    name = _LIBRARY_NAMES.get(provider, provider)
    try:
        _, info = get_snapshot().find_provider_model(model, None, name, None)
    except LookupError:
        return None
    return info
