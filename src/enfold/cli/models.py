"""`enfold models`: the limits of models, as the database has them."""

from __future__ import annotations

from dataclasses import asdict

from cyclopts import App

from enfold.cli.screen import number, put_json, put_table
from enfold.cli.stored import Db, Json, with_engine
from enfold.engine import Engine
from enfold.modelconfig import ModelConfig

app = App(name="models", help="Limits of models: list, set, reset.")


@app.default
@app.command(name="list")
def list_models(word: str = "", *, db: Db = None, json: Json = False) -> None:
    """List the known models.

    Parameters
    ----------
    word
        Only models whose name has this in it.
    """

    async def work(engine: Engine) -> list[ModelConfig]:
        return [config for config in await engine.models.all() if word in config.id]

    _show(with_engine(db, work), json=json)


@app.command
def show(model: str, *, db: Db = None, json: Json = False) -> None:
    """Show one model; one that is not known yet is detected.

    Parameters
    ----------
    model
        As provider:model.
    """

    async def work(engine: Engine) -> ModelConfig:
        return await engine.models.get(model)

    _show([with_engine(db, work)], json=json)


@app.command(name="set")
def set_model(
    model: str,
    *,
    max_input: int | None = None,
    max_output: int | None = None,
    threshold: float | None = None,
    retention_tokens: int | None = None,
    tokenizer: str | None = None,
    correction: float | None = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Change the limits of a model, or add one.

    Parameters
    ----------
    model
        As provider:model.
    max_input
        The largest input in tokens; 128,000 for a model that nobody knows.
    max_output
        The longest reply in tokens.
    threshold
        The share of the limit at which a compression is due, 0.05 to 1.
    retention_tokens
        How many of the newest tokens stay verbatim.
    tokenizer
        Who counts for it.
    correction
        How many of the model's tokens one counted token stands for.
    """
    given = {
        "max_input": max_input,
        "max_output": max_output,
        "threshold": threshold,
        "retention_tokens": retention_tokens,
        "tokenizer": tokenizer,
        "correction": correction,
    }
    values = {name: value for name, value in given.items() if value is not None}

    async def work(engine: Engine) -> ModelConfig:
        return await engine.models.edit(model, **values)

    _show([with_engine(db, work)], json=json)


@app.command
def reset(model: str, *, db: Db = None, json: Json = False) -> None:
    """Go back to the limits that are detected.

    Parameters
    ----------
    model
        As provider:model.
    """

    async def work(engine: Engine) -> ModelConfig:
        return await engine.models.reset(model)

    _show([with_engine(db, work)], json=json)


def _show(configs: list[ModelConfig], *, json: bool) -> None:
    if json:
        put_json([asdict(config) for config in configs])
        return
    rows = [
        (
            config.id,
            f"{config.max_input:,}",
            f"{config.max_output:,}",
            f"{config.threshold:.0%}",
            f"{config.retention_tokens:,}",
            config.tokenizer,
            f"{config.correction:g}",
            config.source,
        )
        for config in configs
    ]
    columns = ("model", "input", "output", "threshold", "keeps", "tokenizer", "factor", "source")
    put_table(number(len(rows), "model"), columns, rows)
