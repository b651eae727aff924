"""Presets of the engine: the built-in ones and those saved in the database, and applying one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from enfold.errors import ConfigError, EnfoldError, NotFoundError
from enfold.records import SessionKey, SessionUpdate
from enfold.settings import ALIASES
from enfold.store import catalog, sessions
from enfold.store.database import Database
from enfold.store.store import Store
from enfold.strategies import contract, presets
from enfold.strategies.presets import Preset

if TYPE_CHECKING:
    from enfold.engine.session import Session

SCOPE = "presets"
"""Of the settings, where presets are kept."""


class Presets:
    """Presets by name: read, saved, deleted, applied."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> tuple[Preset, ...]:
        """The built-in ones, then your own by name; one may say why it can no longer be used."""
        saved = await self._store.read(catalog.settings, SCOPE)
        own = (_read(name, value) for name, value in sorted(saved.items()))
        return (*map(presets.get, presets.BUILT_IN), *own)

    async def get(self, name: str) -> Preset:
        """The preset of that name."""
        return await self._store.read(find, name)

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


def find(db: Database, name: str) -> Preset:
    """The preset of that name, built in or saved; `NotFoundError` or `ConfigError` if none is."""
    if name in presets.BUILT_IN:
        return presets.get(name)
    saved = catalog.settings(db, SCOPE)
    if name not in saved:
        names = ", ".join((*presets.BUILT_IN, *sorted(saved)))
        raise NotFoundError(f"no preset {name!r}; there are {names}")
    return presets.read(saved[name])


def expand(
    db: Database, levels: Sequence[tuple[str, Mapping[str, Any]]]
) -> tuple[list[tuple[str, Mapping[str, Any]]], tuple[str, ...]]:
    """The levels of settings with what their presets say, and what there is to say of that.

    What a level sets itself wins over its preset. A preset that a call names must be there; one
    that was stored and is gone is passed over with a note.
    """
    expanded: list[tuple[str, Mapping[str, Any]]] = []
    notes: list[str] = []
    for source, given in levels:
        name = given.get("preset")
        if not isinstance(name, str):
            expanded.append((source, given))
            continue
        try:
            preset = find(db, name)
        except EnfoldError as error:
            if source == "call":
                raise
            notes.append(f"the preset of the {source} cannot be used: {error}")
            expanded.append((source, given))
            continue
        expanded.append((source, _laid_over(preset, given)))
    return expanded, tuple(notes)


def _laid_over(preset: Preset, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a level, with those of its preset as defaults."""
    own = {ALIASES.get(name, name): value for name, value in given.items()}
    configs = own.get("strategy_config")
    return {
        "strategy": preset.strategy,
        **own,
        "strategy_config": {
            preset.strategy: preset.config,
            **(configs if isinstance(configs, Mapping) else {}),
        },
    }


def check_strategies(given: Mapping[str, Any]) -> None:
    """Raise `ConfigError` if settings name a strategy that is not there, or misconfigure one."""
    if given.get("strategy") is not None:
        contract.get(given["strategy"])
    for name, config in (given.get("strategy_config") or {}).items():
        faults = contract.get(name).faults(config)
        if faults:
            raise ConfigError("; ".join(f"strategy_config.{name}.{fault}" for fault in faults))


def _read(name: str, value: Any) -> Preset:
    try:
        return presets.read(value)
    except ConfigError as error:
        return Preset(name, "", "", fault=str(error))


def _save(db: Database, preset: Preset, *, replace: bool) -> None:
    if not replace and preset.name in catalog.settings(db, SCOPE):
        raise ConfigError(f"name: there is a preset {preset.name!r} already; replace it, or rename")
    catalog.put_setting(db, SCOPE, preset.name, preset.as_json())


def _delete(db: Database, name: str) -> None:
    if name not in catalog.settings(db, SCOPE):
        raise NotFoundError(f"no preset {name!r} of yours")
    catalog.delete_setting(db, SCOPE, name)


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
