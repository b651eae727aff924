"""Models of the engine: the configs in the database, detected when first asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from enfold import tokens
from enfold.errors import ConfigError
from enfold.llm.prices import detect, of_window
from enfold.modelconfig import ModelConfig, from_row, to_row
from enfold.store import catalog
from enfold.store.store import Store

_EDITABLE = ("max_input", "max_output", "threshold", "retention_tokens", "tokenizer", "correction")


class Models:
    """Model configs: read, edited, reset. An edit holds for the next decision, in every process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> tuple[ModelConfig, ...]:
        """Every config, by id."""
        return tuple(map(from_row, await self._store.read(catalog.model_configs)))

    async def get(self, id: str) -> ModelConfig:
        """The config of `provider:model`; one that is asked for the first time is detected."""
        row = await self._store.read(catalog.model_config, id)
        return from_row(row) if row is not None else await self.reset(id)

    async def edit(self, id: str, **values: Any) -> ModelConfig:
        """Change some values of a config, or add a model."""
        unknown = sorted(set(values) - set(_EDITABLE))
        if unknown:
            raise ConfigError(f"{unknown[0]!r} is not one of {', '.join(_EDITABLE)}")
        row = await self._store.read(catalog.model_config, id)
        current = detect(id) if row is None else from_row(row)
        changed = replace(current, **values, source="manual")
        tokens.get(changed.tokenizer)  # which says so if there is none of that name
        await self._store.write(catalog.put_model_config, to_row(changed))
        return changed

    async def reset(self, id: str) -> ModelConfig:
        """Go back to what is detected."""
        detected = detect(id)
        await self._store.write(catalog.put_model_config, to_row(detected))
        return detected

    async def learn(self, id: str, window: int, max_output: int | None = None) -> ModelConfig:
        """Take over what the provider says of a model, except over what a person set."""
        row = await self._store.read(catalog.model_config, id)
        current = None if row is None else from_row(row)
        if current is not None and current.source == "manual":
            return current
        learned = of_window(id, window, max_output, "api")
        if current is not None:
            learned = replace(
                current, max_input=learned.max_input, max_output=learned.max_output, source="api"
            )
        await self._store.write(catalog.put_model_config, to_row(learned))
        return learned

    async def delete(self, id: str) -> None:
        """Forget a config; it is detected again if it is asked for."""
        await self._store.write(catalog.delete_model_config, id)
