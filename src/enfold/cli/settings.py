"""`enfold settings` and `enfold presets`: settings with sources, and named strategy configs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from enfold.cli.files import open_input, put_value
from enfold.cli.screen import Db, Json, Out, put_json, put_list, put_table, say
from enfold.engine import Engine
from enfold.errors import ConfigError
from enfold.jsontext import dump_text, loads_or_text
from enfold.settings import LEVELS, check, fields, renaming_note, setting_values
from enfold.strategies import presets
from enfold.strategies.presets import Preset
from enfold.wiring import open_engine

app = App(name="settings")

Name: TypeAlias = Annotated[str, Parameter(help=f"The setting: {', '.join(fields())}.")]


@app.default
@app.command(name="list")
async def list_settings(*, db: Db = None, json: Json = False) -> None:
    """List all settings with their values and sources."""
    async with open_engine(db) as engine:
        await _show(engine, json=json)


@app.command(name="set")
async def set_setting(
    name: Name,
    value: Annotated[str, Parameter(help="The value: true or false, a number, or a text.")],
    /,
    *,
    db: Db = None,
    json: Json = False,
) -> None:
    """Set a setting for all sessions, in every process, from the next decision on."""
    async with open_engine(db) as engine:
        await engine.set(name, loads_or_text(value))
        if note := renaming_note(name):
            say(note)
        await _show(engine, json=json, only=name)


@app.command
async def unset(name: Name, /, *, db: Db = None, json: Json = False) -> None:
    """Remove a value, so that the setting is inherited again."""
    async with open_engine(db) as engine:
        await engine.set(name, None)
        await _show(engine, json=json, only=name)


async def _show(engine: Engine, *, json: bool, only: str | None = None) -> None:
    """Print all settings, or the one that was changed."""
    found = setting_values(await engine.settings(), levels=engine.static_settings)
    if only is not None:
        changed, _ = check(only, None)
        found = {changed: found[changed]}
    if json:
        put_json(found)
        return
    rows: list[tuple[str, str, str]] = []
    for name, each in found.items():
        typed = each.value if isinstance(each.value, str) else dump_text(each.value)
        level = f"{each.level}: {each.note}" if each.note else each.level
        rows.append((name, "unset" if each.value is None else typed, level))
    title = f"settings; the first source with a value wins: {', '.join(LEVELS)}"
    put_table(title, ("setting", "value", "from"), rows)


presets_app = App(
    name="presets",
    help_epilogue="""\
A preset is a strategy with its config. speed, quality, cost, balanced and agent
are built in; your own presets are in the database.

Examples:
  enfold presets apply balanced
  enfold presets export balanced --out mine.json
  enfold presets import mine.json --name mine""",
)

PresetName: TypeAlias = Annotated[str, Parameter(help="The preset's name.")]
OnlySession: TypeAlias = Annotated[
    str | None,
    Parameter(help="Only for this session. Default: for all sessions without their own."),
]
ReplacePreset: TypeAlias = Annotated[bool, Parameter(help="Replace an existing preset.")]


@presets_app.default
@presets_app.command(name="list")
async def list_presets(*, db: Db = None, json: Json = False) -> None:
    """List all presets: the built-in ones, then your own."""
    async with open_engine(db) as engine:
        found = await engine.presets.all()
    columns: Mapping[str, Callable[[Preset], str]] = {
        "preset": lambda each: each.name,
        "strategy": lambda each: each.strategy or "?",
        "description": lambda each: (
            f"cannot be used: {each.fault}"
            if each.fault
            else each.description.partition(". ")[0].rstrip(".")
        ),
    }
    put_list(found, "preset", columns, json=json)


@presets_app.command
async def show(name: PresetName, /, *, db: Db = None) -> None:
    """Show a preset as JSON, as `export` writes it."""
    async with open_engine(db) as engine:
        put_json((await engine.presets.get(name)).as_json())


@presets_app.command
async def apply(name: PresetName, /, *, session: OnlySession = None, db: Db = None) -> None:
    """Use a preset's strategy and config, from the next compression on."""
    async with open_engine(db) as engine:
        chosen = await engine.find(session) if session is not None else None
        preset = await engine.presets.apply(name, chosen)
    say(f"{preset.name} applied: the strategy is {preset.strategy}")


@presets_app.command
async def save(
    name: PresetName,
    /,
    *,
    description: Annotated[str, Parameter(help="A description.")] = "",
    replace: ReplacePreset = False,
    db: Db = None,
) -> None:
    """Save the strategy in use, with its config, as a preset of your own."""
    async with open_engine(db) as engine:
        settings = await engine.settings()
        config = settings.strategy_config.get(settings.strategy, {})
        preset = Preset(name, description, settings.strategy, config)
        await engine.presets.save(preset, replace=replace)
    say(f"{name} saved: {settings.strategy}")


@presets_app.command(name="import")
async def import_preset(
    file: Annotated[str, Parameter(help="A file of `enfold presets export`; - is standard input.")],
    /,
    *,
    name: Annotated[str | None, Parameter(help="Save it under this name instead.")] = None,
    replace: ReplacePreset = False,
    db: Db = None,
) -> None:
    """Save the preset of a file as your own."""
    value = open_input(file).value()
    if name is not None and isinstance(value, dict):
        value = {**value, "name": name}
    try:
        preset = presets.read(value)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None
    async with open_engine(db) as engine:
        await engine.presets.save(preset, replace=replace)
    say("\n".join((*preset.notes, f"{preset.name} saved: {preset.strategy}")))


@presets_app.command
async def export(name: PresetName, /, *, out: Out = None, db: Db = None) -> None:
    """Write a preset as JSON."""
    async with open_engine(db) as engine:
        preset = await engine.presets.get(name)
    put_value(preset.as_json(), out)


@presets_app.command
async def delete(name: PresetName, /, *, db: Db = None) -> None:
    """Delete a preset of your own."""
    async with open_engine(db) as engine:
        await engine.presets.delete(name)
    say(f"{name} deleted")
