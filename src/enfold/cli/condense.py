"""`enfold condense`: one conversation made smaller, and a ledger of what was taken out."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import App, Parameter

from enfold import tokens
from enfold.cli.options import Dialect, File, Out, Tokenizer
from enfold.cli.reading import STANDARD_INPUT, Input, open_input
from enfold.cli.screen import number, say, working
from enfold.cli.writing import put_value, save
from enfold.dialects import AUTO
from enfold.errors import InputError
from enfold.jsontext import dumps
from enfold.settings import Settings
from enfold.stateless import Condensed, Options
from enfold.stateless import condense as condense_conversation
from enfold.strategies import presets
from enfold.strategies.contract import Strategy
from enfold.strategies.presets import Preset
from enfold.transcripts import Transcript, conversations, document
from enfold.wiring import local_summarizer, make_strategy, open_engine

app = App(
    name="condense",
    usage="enfold condense [OPTIONS] [FILE]",
    help_epilogue="""\
The condensed conversation goes to standard output, in the dialect and the
shape in which it came; the report goes to standard error. Without --window
and --target it becomes as small as the strategy makes it.

Examples:
  enfold condense chat.json --window 128000 --ledger chat.ledger > small.json
  enfold restore small.json --ledger chat.ledger > chat.json""",
)

PresetName: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="A strategy with its config: speed, quality, cost, balanced, or one of your own.",
        metavar="NAME",
    ),
]
ConfigFile: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="A JSON file with the strategy's own config. If unset: the preset's, or its defaults.",
        metavar="FILE",
    ),
]

_ARRAYS = {conversations.NAME, document.NAME}
"""Formats whose file is the messages themselves, in an array or a request body."""


@app.default
async def condense(
    file: File = STANDARD_INPUT,
    /,
    *,
    strategy: Annotated[
        str | None,
        Parameter(
            help="native folds what is old into a summary; lossless says the same in fewer "
            "tokens; truncation cuts old tool output short; smart runs passes of all of these. "
            "If unset: native.",
            metavar="NAME",
        ),
    ] = None,
    preset: PresetName = None,
    config: ConfigFile = None,
    window: Annotated[
        int | None,
        Parameter(help="The model's window in tokens: end at or below 60 % of what it takes."),
    ] = None,
    target: Annotated[
        int | None, Parameter(help="End at or below so many tokens, whatever the window.")
    ] = None,
    keep_tokens: Annotated[
        int | None,
        Parameter(
            help="So many of the newest tokens stay as they are. If unset: what the strategy keeps."
        ),
    ] = None,
    dialect: Dialect = AUTO,
    tokenizer: Tokenizer = tokens.DEFAULT,
    out: Out = None,
    ledger: Annotated[
        Path | None, Parameter(help="Write here what was taken out, for `enfold restore`.")
    ] = None,
    json: Annotated[
        bool, Parameter(help="Print messages, report, ledger and receipt as one JSON object.")
    ] = False,
) -> None:
    """Make a conversation smaller, with a ledger to restore it from."""
    options = Options(
        tokenizer=tokens.get(tokenizer).name, target=target, window=window, keep_tokens=keep_tokens
    )
    found = None if preset is None else await _preset(preset)
    name, configs = presets.choose(found, strategy, None if config is None else _config(config))
    settings = Settings(strategy=name, strategy_config={name: configs})
    chosen = make_strategy(settings, local_summarizer())
    given = open_input(file)
    with working(f"Condensing {given.name}"):
        result = await _condense(_only(given, dialect), chosen, options)
    _write(result, out, ledger, json=json)
    if not json:
        say(f"{result.report}\n{result.receipt}")


async def _preset(name: str) -> Preset:
    """A built-in preset, or one that is saved in the database."""
    if name in presets.BUILT_IN:
        return presets.get(name)
    async with open_engine() as engine:
        return await engine.presets.get(name)


def _config(file: str) -> dict[str, Any]:
    value = open_input(file).value()
    if isinstance(value, dict):
        return value
    raise InputError("expected an object, the strategy's config", place=file)


async def _condense(transcript: Transcript, strategy: Strategy, options: Options) -> Condensed:
    """The active branch, condensed. Other branches of the same array are the ledger's to give back.

    Those of a log are not: what comes out of it is an array, of the one branch that was asked for.
    """
    branch = transcript.conversation()
    others = len(transcript.entries) - len(branch.messages)
    if not others or transcript.format not in _ARRAYS:
        return await condense_conversation(branch, strategy, options)
    done = await condense_conversation(branch, strategy, options, whole=transcript.whole())
    warning = f"{number(others, 'message')} of other branches left out; the ledger has them"
    return replace(done, report=replace(done.report, warnings=(*done.report.warnings, warning)))


def _only(given: Input, dialect: str) -> Transcript:
    transcripts = list(islice(given.transcripts(dialect=dialect), 2))
    if len(transcripts) != 1:
        found = "several" if transcripts else "no"
        raise InputError(f"{found} conversations, where one is expected", place=given.name)
    return transcripts[0]


def _write(result: Condensed, out: Path | None, ledger: Path | None, *, json: bool) -> None:
    """The ledger first: a condensed conversation without its ledger could not be restored."""
    value = result.messages
    if json:
        value = {
            "messages": result.messages,
            "report": result.report.as_json(),
            "ledger": result.ledger.as_json(),
            "receipt": result.receipt.as_json(),
        }
    contents = ((ledger, result.ledger.as_json()), (out, value))
    save(*((place, dumps(content) + b"\n") for place, content in contents if place is not None))
    if out is None:
        put_value(value, None)
