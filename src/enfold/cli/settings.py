"""`enfold settings`: show and change settings, with the source of each value."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from enfold.cli.screen import Db, Json, put_json, put_table, say
from enfold.jsontext import dump_text
from enfold.settings import (
    LEVELS,
    Settings,
    check,
    fields,
    parse_value,
    renaming_note,
    setting_values,
)
from enfold.wiring import open_engine

app = App(name="settings")

Name: TypeAlias = Annotated[str, Parameter(help=f"The setting: {', '.join(fields())}.")]


@app.default
@app.command(name="list")
async def list_settings(*, db: Db = None, json: Json = False) -> None:
    """List all settings with their values and sources."""
    async with open_engine(db) as engine:
        _show(await engine.settings(), json=json)


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
        await engine.set(name, parse_value(value))
        if note := renaming_note(name):
            say(note)
        _show(await engine.settings(), json=json, only=name)


@app.command
async def unset(name: Name, /, *, db: Db = None, json: Json = False) -> None:
    """Remove a value, so that the setting is inherited again."""
    async with open_engine(db) as engine:
        await engine.set(name, None)
        _show(await engine.settings(), json=json, only=name)


def _show(settings: Settings, *, json: bool, only: str | None = None) -> None:
    """Print all settings, or the one that was changed."""
    found = setting_values(settings)
    if only is not None:
        changed, _ = check(only, None)
        found = {changed: found[changed]}
    if json:
        put_json(found)
        return
    rows = [(name, _typed(each.value), each.level) for name, each in found.items()]
    title = f"settings; the first source with a value wins: {', '.join(LEVELS)}"
    put_table(title, ("setting", "value", "from"), rows)


def _typed(value: object) -> str:
    """Return a value as it is typed on the command line."""
    if value is None:
        return "unset"
    return value if isinstance(value, str) else dump_text(value)
