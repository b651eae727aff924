"""`enfold settings`: what is set, where it comes from, and setting it."""

from __future__ import annotations

from cyclopts import App

from enfold.cli.screen import put_json, put_table
from enfold.cli.stored import Db, Json, with_engine
from enfold.engine import Engine
from enfold.settings import CHECKS, Settings, parse_value

app = App(name="settings", help="Settings of all sessions: list, set, unset.")


@app.default
@app.command(name="list")
def list_settings(*, db: Db = None, json: Json = False) -> None:
    """List all settings with their values and where these come from."""

    async def work(engine: Engine) -> Settings:
        return await engine.settings()

    _show(with_engine(db, work), json=json)


@app.command(name="set")
def set_setting(name: str, value: str, *, db: Db = None, json: Json = False) -> None:
    """Set a setting for all sessions; in force from the next decision on, in every process.

    Parameters
    ----------
    name
        The setting.
    value
        Its value.
    """

    async def work(engine: Engine) -> Settings:
        await engine.set(name, parse_value(value))
        return await engine.settings()

    _show(with_engine(db, work), json=json)


@app.command
def unset(name: str, *, db: Db = None, json: Json = False) -> None:
    """Let a setting be inherited again.

    Parameters
    ----------
    name
        The setting.
    """

    async def work(engine: Engine) -> Settings:
        await engine.set(name, None)
        return await engine.settings()

    _show(with_engine(db, work), json=json)


def _show(settings: Settings, *, json: bool) -> None:
    values = {name: getattr(settings, name) for name in CHECKS}
    if json:
        found = {k: {"value": v, "source": settings.sources[k]} for k, v in values.items()}
        put_json(found)
        return
    rows = [(k, "unset" if v is None else str(v), settings.sources[k]) for k, v in values.items()]
    put_table("settings", ("setting", "value", "from"), rows)
