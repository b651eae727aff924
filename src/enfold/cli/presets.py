"""`enfold presets`: list, apply, save, import and export named strategy configs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from enfold.amounts import number
from enfold.cli.files import open_input, put_value
from enfold.cli.screen import Db, Json, Out, put_json, put_table, say
from enfold.errors import ConfigError
from enfold.strategies import presets
from enfold.strategies.presets import Preset
from enfold.wiring import open_engine

app = App(
    name="presets",
    help_epilogue="""\
A preset is a strategy with its config. speed, quality, cost, balanced and agent
are built in; your own presets are in the database.

Examples:
  enfold presets apply balanced
  enfold presets export balanced --out mine.json
  enfold presets import mine.json --name mine""",
)

Name: TypeAlias = Annotated[str, Parameter(help="The preset's name.")]
Session: TypeAlias = Annotated[
    str | None,
    Parameter(help="Only for this session. Default: for all sessions without their own."),
]
Replace: TypeAlias = Annotated[bool, Parameter(help="Replace an existing preset.")]


@app.default
@app.command(name="list")
async def list_presets(*, db: Db = None, json: Json = False) -> None:
    """List all presets: the built-in ones, then your own."""
    async with open_engine(db) as engine:
        _show(await engine.presets.all(), json=json)


@app.command
async def show(name: Name, /, *, db: Db = None) -> None:
    """Show a preset as JSON, as `export` writes it."""
    async with open_engine(db) as engine:
        put_json((await engine.presets.get(name)).as_json())


@app.command
async def apply(name: Name, /, *, session: Session = None, db: Db = None) -> None:
    """Use a preset's strategy and config, from the next compression on."""
    async with open_engine(db) as engine:
        chosen = await engine.find(session) if session is not None else None
        preset = await engine.presets.apply(name, chosen)
    say(f"{preset.name} applied: the strategy is {preset.strategy}")


@app.command
async def save(
    name: Name,
    /,
    *,
    description: Annotated[str, Parameter(help="A description.")] = "",
    replace: Replace = False,
    db: Db = None,
) -> None:
    """Save the strategy in use, with its config, as a preset of your own."""
    async with open_engine(db) as engine:
        settings = await engine.settings()
        config = settings.strategy_config.get(settings.strategy, {})
        preset = Preset(name, description, settings.strategy, config)
        await engine.presets.save(preset, replace=replace)
    say(f"{name} saved: {settings.strategy}")


@app.command(name="import")
async def import_preset(
    file: Annotated[str, Parameter(help="A file of `enfold presets export`; - is standard input.")],
    /,
    *,
    name: Annotated[str | None, Parameter(help="Save it under this name instead.")] = None,
    replace: Replace = False,
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
    say(f"{preset.name} saved: {preset.strategy}")


@app.command
async def export(name: Name, /, *, out: Out = None, db: Db = None) -> None:
    """Write a preset as JSON."""
    async with open_engine(db) as engine:
        preset = await engine.presets.get(name)
    put_value(preset.as_json(), out)


@app.command
async def delete(name: Name, /, *, db: Db = None) -> None:
    """Delete a preset of your own."""
    async with open_engine(db) as engine:
        await engine.presets.delete(name)
    say(f"{name} deleted")


def _show(found: Sequence[Preset], *, json: bool) -> None:
    if json:
        put_json(found)
        return
    rows = [
        (
            preset.name,
            preset.strategy or "?",
            f"cannot be used: {preset.fault}"
            if preset.fault
            else preset.description.partition(". ")[0].rstrip("."),
        )
        for preset in found
    ]
    put_table(number(len(rows), "preset"), ("preset", "strategy", "description"), rows)
