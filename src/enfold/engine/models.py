"""Models and presets of the engine: rows in the database, read, changed and applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from enfold import tokens
from enfold.budget import MIN_CONDENSE_THRESHOLD
from enfold.engine.state import PRESETS, find_preset
from enfold.errors import ConfigError, NotFoundError
from enfold.fields import DescribedModel, describe, described
from enfold.llm.costs import detect, of_window
from enfold.modelconfig import LARGEST, OWN_VALUES, ModelConfig
from enfold.records import SessionUpdate
from enfold.store import catalog, sessions
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.strategies import presets
from enfold.strategies.presets import Preset

if TYPE_CHECKING:
    from enfold.engine.session import Session

_token_field = partial(
    described,
    default=None,
    le=LARGEST,
    unit="tokens",
    unset="unchanged",
    expected="a whole number, 0 or more",
)


class ModelChanges(DescribedModel):
    """New values of a model config; a value that is absent stays as it is."""

    model_config = {  # noqa: RUF012 - pydantic's own form
        "json_schema_extra": {"examples": [{"max_input": 128_000, "threshold": 0.9}]}
    }

    max_input: int | None = _token_field(
        "Maximum input",
        "The largest input, in the model's tokens. Most models accept at least 128,000.",
        ge=1,
        expected="a whole number, 1 or more",
    )
    max_output: int | None = _token_field(
        "Maximum output", "The longest reply, in the model's tokens.", ge=0
    )
    threshold: float | None = described(
        "Threshold",
        "The share of the limit at which a compression is due: 0.95 is 95 %.",
        default=None,
        ge=MIN_CONDENSE_THRESHOLD / 100,
        le=1,
        unset="unchanged",
    )
    retention_tokens: int | None = _token_field(
        "Recent tokens kept", "Number of recent tokens kept verbatim.", ge=0
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
        return await self._store.read(catalog.model_configs)

    async def get(self, id: str) -> ModelConfig:
        """Return the config of `provider:model`; the limits of a new model are detected."""

        def add_or_read(db: Database) -> ModelConfig:
            # Another one, such as a person's, may have been stored meanwhile.
            detected = detect(id)
            catalog.add_model_configs(db, [detected])
            return catalog.model_config(db, id) or detected

        stored = await self._store.read(catalog.model_config, id)
        return await self._store.write(add_or_read) if stored is None else stored

    async def edit(self, id: str, **values: Any) -> ModelConfig:
        """Change some values of a config, or add a model."""
        names = describe(ModelChanges)
        unknown = sorted(set(values) - set(names))
        if unknown:
            raise ConfigError(f"{unknown[0]!r} is not one of {', '.join(names)}")
        current = await self._store.read(catalog.model_config, id) or detect(id)
        own = tuple(name for name in OWN_VALUES if name in values or name in current.own)
        changed = replace(current, **values, source="manual", own=own)
        tokens.get(changed.tokenizer)  # which says so if there is none of that name
        await self._store.write(catalog.put_model_config, changed)
        return changed

    async def reset(self, id: str) -> ModelConfig:
        """Replace the config by the detected one."""
        detected = detect(id)
        await self._store.write(catalog.put_model_config, detected)
        return detected

    async def learn(self, id: str, window: int, max_output: int | None = None) -> ModelConfig:
        """Store the provider's limits of a model, except those that a person set."""
        current = await self._store.read(catalog.model_config, id)
        if current is not None and current.source == "manual":
            return current
        learned = of_window(id, window, max_output, "api")
        if current is not None:
            learned = replace(
                current, max_input=learned.max_input, max_output=learned.max_output, source="api"
            )
        await self._store.write(catalog.put_model_config, learned)
        return learned

    async def learn_limit(self, id: str, window: int) -> None:
        """Take over the window that an error of the provider names, if it is smaller than known."""
        current = await self.get(id)
        if window < current.max_input + current.max_output:
            await self.learn(id, window)

    async def delete(self, id: str) -> None:
        """Delete a config; it is detected again at its next use."""
        await self._store.write(catalog.delete_model_config, id)


class Presets:
    """Presets by name: read, saved, deleted, applied."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> tuple[Preset, ...]:
        """Return the built-in presets, then your own by name; a faulty one has its fault."""
        found = [presets.get(name) for name in presets.BUILT_IN]
        saved = await self._store.read(catalog.settings, PRESETS)
        for name, value in sorted(saved.items()):
            try:
                found.append(presets.read(value))
            except ConfigError as error:
                found.append(Preset(name, "", "", fault=str(error)))
        return tuple(found)

    async def get(self, name: str) -> Preset:
        """The preset of that name."""
        return await self._store.read(find_preset, name)

    async def save(self, preset: Preset, *, replace: bool = False) -> Preset:
        """Keep a preset of your own, if need be in place of another of yours."""
        presets.check(preset)
        name = preset.name
        if preset.is_built_in:
            raise ConfigError(f"name: {name!r} is built in; give yours another name")

        def save(db: Database) -> None:
            if not replace and name in catalog.settings(db, PRESETS):
                raise ConfigError(
                    f"name: there is a preset {name!r} already; replace it, or rename"
                )
            catalog.put_setting(db, PRESETS, name, preset.as_json())

        await self._store.write(save)
        return preset

    async def delete(self, name: str) -> None:
        """Forget a preset of your own."""
        if name in presets.BUILT_IN:
            raise ConfigError(f"the preset {name!r} is built in and cannot be deleted")

        def delete(db: Database) -> None:
            if name not in catalog.settings(db, PRESETS):
                raise NotFoundError(f"no preset {name!r} of yours")
            catalog.delete_setting(db, PRESETS, name)

        await self._store.write(delete)

    async def apply(self, name: str, session: Session | None = None) -> Preset:
        """Use a preset's strategy with its config, in one session or where nothing else is set.

        Both can be changed afterwards; the preset stays as it is.
        """
        preset = await self.get(name)
        key = None if session is None else session.key

        def apply(db: Database) -> None:
            if key is None:
                given: Mapping[str, Any] = catalog.settings(db, "global")
            else:
                given = sessions.get(db, key).settings
            # The configs of other strategies stay.
            configs = {**given.get("strategy_config", {}), preset.strategy: dict(preset.config)}
            if key is None:
                catalog.put_setting(db, "global", "strategy", preset.strategy)
                catalog.put_setting(db, "global", "strategy_config", configs)
                catalog.delete_setting(db, "global", "preset")
                return
            settings = {**given, "strategy": preset.strategy, "strategy_config": configs}
            settings.pop("preset", None)
            sessions.update(db, key, SessionUpdate(settings=settings))

        await self._store.write(apply)
        return preset
