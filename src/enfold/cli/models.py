"""`enfold models`: the limits of models in the database."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from enfold.cli.files import Tokenizer
from enfold.cli.screen import Db, Json, put_list, say
from enfold.engine import Engine
from enfold.errors import ConfigError
from enfold.modelconfig import ModelConfig
from enfold.wiring import open_engine

app = App(name="models")

_COLUMNS: Mapping[str, Callable[[ModelConfig], str]] = {
    "model": lambda each: each.id,
    "input": lambda each: f"{each.max_input:,}",
    "output": lambda each: f"{each.max_output:,}",
    "threshold": lambda each: f"{each.threshold:.0%}",
    "keeps": lambda each: f"{each.retention_tokens:,}",
    "tokenizer": lambda each: each.tokenizer,
    "factor": lambda each: f"{each.correction:g}",
    "source": lambda each: each.source,
}

Model: TypeAlias = Annotated[
    str, Parameter(help="The model, as provider:model; a stored model that is unique, by its name.")
]


@app.default
@app.command(name="list")
async def list_models(
    word: Annotated[str, Parameter(help="Only models with this in their names.")] = "",
    /,
    *,
    db: Db = None,
    json: Json = False,
) -> None:
    """List the stored models."""
    async with open_engine(db) as engine:
        stored = await engine.models.all()
    found = [config for config in stored if word.lower() in config.id.lower()]
    put_list(found, "model", _COLUMNS, json=json)
    if not found:
        say("`enfold models show provider:model` looks a model up; `enfold models set` adds one")


@app.command
async def show(model: Model, /, *, db: Db = None, json: Json = False) -> None:
    """Show one model; a new one is looked up and stored."""
    async with open_engine(db) as engine:
        found = await engine.models.get(await _full_name(engine, model))
    put_list([found], "model", _COLUMNS, json=json)


async def _full_name(engine: Engine, model: str) -> str:
    """Return provider:model for a model's name, if one stored model has it."""
    if ":" in model:
        return model
    found = [each.id for each in await engine.models.all() if each.model == model]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"model {model!r}: there are several: {', '.join(found)}")
    raise ConfigError(
        f"no stored model is called {model!r}; `enfold models list {model}` searches, and "
        f"`enfold models show provider:{model}` looks one up"
    )


@app.command(name="set")
async def set_model(
    model: Model,
    /,
    *,
    max_input: Annotated[
        int | None, Parameter(help="The largest input in tokens; 128,000 if unknown.")
    ] = None,
    max_output: Annotated[int | None, Parameter(help="The longest reply in tokens.")] = None,
    threshold: Annotated[
        float | None,
        Parameter(help="The share of the limit at which a compression is due, 0.05 to 1."),
    ] = None,
    retention_tokens: Annotated[
        int | None, Parameter(help="Number of recent tokens kept verbatim.")
    ] = None,
    tokenizer: Tokenizer | None = None,
    correction: Annotated[
        float | None, Parameter(help="Factor on counted tokens: 1.05 adds 5 %.")
    ] = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Change the limits of a model, or add one."""
    given = {
        "max_input": max_input,
        "max_output": max_output,
        "threshold": threshold,
        "retention_tokens": retention_tokens,
        "tokenizer": tokenizer,
        "correction": correction,
    }
    values = {name: value for name, value in given.items() if value is not None}
    if not values:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ConfigError(f"model {model}: nothing to set; use at least one of {options}")
    async with open_engine(db) as engine:
        edited = await engine.models.edit(await _full_name(engine, model), **values)
    put_list([edited], "model", _COLUMNS, json=json)


@app.command
async def reset(model: Model, /, *, db: Db = None, json: Json = False) -> None:
    """Reset a model to its published limits."""
    async with open_engine(db) as engine:
        found = await engine.models.reset(await _full_name(engine, model))
    put_list([found], "model", _COLUMNS, json=json)
