"""Models and presets of the engine: rows in the database, read, changed and applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from enfold import tokens
from enfold.budget import MIN_CONDENSE_THRESHOLD
from enfold.engine.state import PRESETS, find_preset
from enfold.errors import ConfigError, NotFoundError
from enfold.fields import DescribedModel, describe, described
from enfold.llm.costs import detect, of_window
from enfold.modelconfig import LARGEST, OWN_VALUES, ModelConfig, from_row, to_row
from enfold.records import ModelConfigRow, SessionKey, SessionUpdate
from enfold.store import catalog, sessions
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.strategies import presets
from enfold.strategies.presets import Preset

if TYPE_CHECKING:
    from enfold.engine.session import Session

_WHOLE = "a whole number, {} or more"


class ModelChanges(DescribedModel):
    """New values of a model config; a value that is absent stays as it is."""

    model_config = {  # noqa: RUF012 - pydantic's own form
        "json_schema_extra": {"examples": [{"max_input": 128_000, "threshold": 0.9}]}
    }

    max_input: int | None = described(
        "Maximum input",
        "The largest input, in the model's tokens. Most models accept at least 128,000.",
        default=None,
        ge=1,
        le=LARGEST,
        unit="tokens",
        unset="unchanged",
        expected=_WHOLE.format(1),
    )
    max_output: int | None = described(
        "Maximum output",
        "The longest reply, in the model's tokens.",
        default=None,
        ge=0,
        le=LARGEST,
        unit="tokens",
        unset="unchanged",
        expected=_WHOLE.format(0),
    )
    threshold: float | None = described(
        "Threshold",
        "The share of the limit at which a compression is due: 0.95 is 95 %.",
        default=None,
        ge=MIN_CONDENSE_THRESHOLD / 100,
        le=1,
        unset="unchanged",
    )
    retention_tokens: int | None = described(
        "Recent tokens kept",
        "Number of recent tokens kept verbatim.",
        default=None,
        ge=0,
        le=LARGEST,
        unit="tokens",
        unset="unchanged",
        expected=_WHOLE.format(0),
    )
    tokenizer: str | None = described(
        "Tokenizer",
        "The tokenizer that counts for the model.",
        default=None,
        choices={name: name for name in tokens.NAMES},
    )
    correction: float | None = described(
        "Correction",
        "The model's tokens per counted token.",
        default=None,
        ge=0.1,
        le=100,
        unset="unchanged",
    )


class Models:
    """Model configs: read, edited, reset. An edit holds for the next decision, in every process."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> tuple[ModelConfig, ...]:
        """Every config, by id."""
        return tuple(map(from_row, await self._store.read(catalog.model_configs)))

    async def get(self, id: str) -> ModelConfig:
        """Return the config of `provider:model`; the limits of a new model are detected."""
        row = await self._store.read(catalog.model_config, id)
        if row is None:
            row = await self._store.write(_add_or_read, to_row(detect(id)))
        return from_row(row)

    async def edit(self, id: str, **values: Any) -> ModelConfig:
        """Change some values of a config, or add a model."""
        names = describe(ModelChanges)
        unknown = sorted(set(values) - set(names))
        if unknown:
            raise ConfigError(f"{unknown[0]!r} is not one of {', '.join(names)}")
        row = await self._store.read(catalog.model_config, id)
        current = detect(id) if row is None else from_row(row)
        own = tuple(name for name in OWN_VALUES if name in values or name in current.own)
        changed = replace(current, **values, source="manual", own=own)
        tokens.get(changed.tokenizer)  # which says so if there is none of that name
        await self._store.write(catalog.put_model_config, to_row(changed))
        return changed

    async def reset(self, id: str) -> ModelConfig:
        """Replace the config by the detected one."""
        detected = detect(id)
        await self._store.write(catalog.put_model_config, to_row(detected))
        return detected

    async def learn(self, id: str, window: int, max_output: int | None = None) -> ModelConfig:
        """Store the provider's limits of a model, except those that a person set."""
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

    async def learn_limit(self, id: str, window: int) -> None:
        """Take over the window that an error of the provider names, if it is smaller than known."""
        current = await self.get(id)
        if window < current.max_input + current.max_output:
            await self.learn(id, window)

    async def delete(self, id: str) -> None:
        """Delete a config; it is detected again at its next use."""
        await self._store.write(catalog.delete_model_config, id)


def _add_or_read(db: Database, config: ModelConfigRow) -> ModelConfigRow:
    """Add a config unless one was stored meanwhile, such as a person's; return the stored one."""
    catalog.add_model_configs(db, [config])
    return catalog.model_config(db, config.id) or config


class Presets:
    """Presets by name: read, saved, deleted, applied."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> tuple[Preset, ...]:
        """Return the built-in presets, then your own by name; a faulty one has its fault."""
        saved = await self._store.read(catalog.settings, PRESETS)
        own = (_read(name, value) for name, value in sorted(saved.items()))
        return (*map(presets.get, presets.BUILT_IN), *own)

    async def get(self, name: str) -> Preset:
        """The preset of that name."""
        return await self._store.read(find_preset, name)

    async def save(self, preset: Preset, *, replace: bool = False) -> Preset:
        """Keep a preset of your own, if need be in place of another of yours."""
        presets.check(preset)
        if preset.is_built_in:
            raise ConfigError(f"name: {preset.name!r} is built in; give yours another name")
        await self._store.write(_save, preset, replace=replace)
        return preset

    async def delete(self, name: str) -> None:
        """Forget a preset of your own."""
        if name in presets.BUILT_IN:
            raise ConfigError(f"the preset {name!r} is built in and cannot be deleted")
        await self._store.write(_delete, name)

    async def apply(self, name: str, session: Session | None = None) -> Preset:
        """Use a preset's strategy with its config, in one session or where nothing else is set.

        Both can be changed afterwards; the preset stays as it is.
        """
        preset = await self.get(name)
        if session is None:
            await self._store.write(_apply, preset)
        else:
            await self._store.write(_apply_to_session, session.key, preset)
        return preset


def _read(name: str, value: Any) -> Preset:
    try:
        return presets.read(value)
    except ConfigError as error:
        return Preset(name, "", "", fault=str(error))


def _save(db: Database, preset: Preset, *, replace: bool) -> None:
    if not replace and preset.name in catalog.settings(db, PRESETS):
        raise ConfigError(f"name: there is a preset {preset.name!r} already; replace it, or rename")
    catalog.put_setting(db, PRESETS, preset.name, preset.as_json())


def _delete(db: Database, name: str) -> None:
    if name not in catalog.settings(db, PRESETS):
        raise NotFoundError(f"no preset {name!r} of yours")
    catalog.delete_setting(db, PRESETS, name)


def _apply(db: Database, preset: Preset) -> None:
    applied = _applied(catalog.settings(db, "global"), preset)
    for name in ("strategy", "strategy_config"):
        catalog.put_setting(db, "global", name, applied[name])
    catalog.delete_setting(db, "global", "preset")


def _apply_to_session(db: Database, key: SessionKey, preset: Preset) -> None:
    applied = _applied(sessions.get(db, key).settings, preset)
    sessions.update(db, key, SessionUpdate(settings=applied))


def _applied(given: Mapping[str, Any], preset: Preset) -> dict[str, Any]:
    """Settings with the preset's strategy and config; configs of other strategies stay."""
    configs = {**given.get("strategy_config", {}), preset.strategy: dict(preset.config)}
    others = {name: value for name, value in given.items() if name != "preset"}
    return {**others, "strategy": preset.strategy, "strategy_config": configs}
