"""`enfold condense` and `enfold restore`: condense conversations, and restore them by ledgers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import App, Parameter
from cyclopts.validators import Number

from enfold import tokens
from enfold.amounts import number
from enfold.bulk import files as layout
from enfold.bulk.files import BulkFile, FoundFiles
from enfold.bulk.run import BulkRun, FileResult
from enfold.bulk.tasks import BulkTask, CondenseTask, RestoreTask, Totals
from enfold.bulk.workers import cores, jobs_for
from enfold.chat.commands import describe_preview
from enfold.cli.files import (
    STANDARD_INPUT,
    Dialect,
    InputFile,
    Tokenizer,
    open_input,
    put_data,
    put_value,
    save,
)
from enfold.cli.screen import advancing, put, put_json, say, working
from enfold.engine.stateless import Condensed, CondenseOptions, restore_unaltered
from enfold.errors import ConfigError, InputError, RestoreError, UnfinishedError
from enfold.jsontext import dumps, to_json
from enfold.ledger import Ledger, describe_altered
from enfold.llm.costs import Prices
from enfold.settings import Settings
from enfold.strategies import presets
from enfold.strategies.presets import Preset
from enfold.transcripts import Transcript
from enfold.wire import AUTO
from enfold.wiring import local_summarizer, make_strategy, open_engine

OutOrFolder: TypeAlias = Annotated[
    str | None,
    Parameter(
        alias="-o",
        help="The file to write, instead of standard output. For many files, or many "
        "conversations in one: the folder; FOLDER/ is created if it does not exist.",
        metavar="PATH",
    ),
]
Jobs: TypeAlias = Annotated[
    int | None,
    Parameter(
        help="For a folder: the number of processes. Default: one per core, fewer for small "
        "inputs.",
        validator=Number(gte=1),
        metavar="N",
    ),
]
EngineKind: TypeAlias = Literal["local", "daft"]
EngineName: TypeAlias = Annotated[
    EngineKind,
    Parameter(
        help="For a folder: local uses processes on this machine; daft uses Daft, here or on a "
        "Ray cluster, for very large collections (enfold[bulk])."
    ),
]
LOCAL: EngineKind = "local"


def is_bulk(files: Sequence[str], out: str | None) -> bool:
    """True for several files, a folder, or a file whose results go into a folder."""
    if len(files) > 1 or any(Path(file).is_dir() for file in files if file != STANDARD_INPUT):
        return True
    return out is not None and (out.endswith("/") or Path(out).is_dir())


def folder_for(files: Sequence[str], out: str | None, ledgers: Path | None) -> Path:
    """Return the folder for the results; raise `ConfigError` if none is named or it is a file."""
    if STANDARD_INPUT in files or not files:
        raise ConfigError("standard input is one conversation, which cannot go into a folder")
    if out is None:
        raise ConfigError("many files need a folder for the results: name it with --out")
    for folder in (Path(out), ledgers):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder} is a file; many files go into a folder")
    return Path(out)


@dataclass(frozen=True, slots=True)
class BulkCommand:
    """A bulk run with its progress and its report."""

    work: BulkTask
    found: FoundFiles
    places: Sequence[BulkFile]
    out: Path
    verb: str
    """The first word of the progress line."""

    def run(self, jobs: int | None, *, json: bool, engine: EngineKind = LOCAL) -> None:
        """Run it and report; raise `UnfinishedError` at the end if a file failed."""
        size = 0
        for place in self.places:
            with suppress(OSError):  # reading it raises the error
                size += place.source.stat().st_size
        workers = jobs or (jobs_for(size) if engine == LOCAL else cores())
        outcomes: list[FileResult] = []
        with advancing(self.verb, size) as on_progress:
            run = BulkRun(self.work, self.places, self.out, workers, engine, on_progress)
            with closing(run.outcomes()) as running:
                for outcome in running:
                    outcomes.append(outcome)
                    if json:
                        put_json(outcome)
        if not json:
            _report(outcomes, self.found.others)
        failed = sum(outcome.error is not None for outcome in outcomes)
        if failed:
            raise UnfinishedError(f"{failed:,} of {number(len(outcomes), 'file')} failed")


def _report(outcomes: Iterable[FileResult], others: int) -> None:
    """Print the totals and every file that failed."""
    tally, files, already = Totals(), 0, 0
    for outcome in outcomes:
        tally = tally.plus(outcome.tally)
        files += outcome.error is None
        already += outcome.status == "already"
        if outcome.error is not None:
            source, error = str(outcome.place.source), str(outcome.error)
            say(f"Failed: {error}" if source in error else f"Failed: {source}: {error}")
    done = f"{number(files, 'file')} with {number(tally.conversations, 'conversation')}"
    change = f"{tally.tokens_before:,} → {tally.tokens_after:,} tokens ({-tally.reduction:+.0%})"
    asides = [f"{already:,} already done"] if already else []
    warnings = len(tally.warnings) + tally.more_warnings
    asides += [f"{number(warnings, 'warning')}, shown with --json"] if warnings else []
    asides += [f"{number(others, 'other file')} ignored"] if others else []
    say("; ".join((f"{done}: {change}" if tally.tokens_before else done, *asides)))


app = App(
    name="condense",
    usage="enfold condense [OPTIONS] [FILES]",
    help_epilogue="""\
The condensed conversation goes to standard output, in the dialect and shape
of the input; the report goes to standard error. Without --window and --target
the strategy makes it as small as it can.

Many files, or a file of many conversations, go into the folder that --out
names. Subfolders are kept, each file keeps its name and format, and its ledger
is FILE.ledger in the same folder, or in the folder that --ledger names. In
folders, .json, .jsonl and .ndjson files are read. Start a stopped run again to
continue it; finished files are not repeated. A file that fails does not stop
the others. --json prints a line for every file. Daft can process very large
collections (--engine daft), on this machine, or with DAFT_RUNNER=ray and
RAY_ADDRESS on a Ray cluster.

Examples:
  enfold condense chat.json --window 128000 --ledger chat.ledger > small.json
  enfold restore small.json --ledger chat.ledger > chat.json
  enfold condense chats/ --strategy lossless --out smaller/
  enfold restore smaller/ --out chats-again/""",
)

NO_LEDGER = "Nothing of this can be restored: no ledger is kept. --ledger FILE keeps one."

PresetName: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="A strategy with its config: speed, quality, cost, balanced, agent, or your own.",
        metavar="NAME",
    ),
]
ConfigFile: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="A JSON file with the strategy's config. Default: the preset's, or the defaults.",
        metavar="FILE",
    ),
]
ProfileName: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="Let models write the summaries, as in sessions with this profile; see "
        "`enfold profiles`. Default: the built-in summarizer, without a model.",
        metavar="NAME",
    ),
]
StrategyName: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="native summarizes old messages; lossless writes the same content in fewer "
        "tokens; truncation shortens old tool output; smart runs passes of all of these. "
        "Default: native.",
        metavar="NAME",
    ),
]
WindowTokens: TypeAlias = Annotated[
    int | None,
    Parameter(
        help="The model's window in tokens. A longer conversation ends at 60 % of it or less."
    ),
]
Files: TypeAlias = Annotated[
    str,
    Parameter(
        help="A JSON array of messages, a request body, JSON Lines with one conversation per line, "
        "an agent's session log, or an export of ChatGPT or of enfold; - is standard input. "
        "Several, or folders of them, go into a folder."
    ),
]


@app.default
def condense(
    *files: Files,
    strategy: StrategyName = None,
    preset: PresetName = None,
    config: ConfigFile = None,
    profile: ProfileName = None,
    window: WindowTokens = None,
    target: Annotated[
        int | None, Parameter(help="The largest result in tokens, for any window.")
    ] = None,
    keep_tokens: Annotated[
        int | None,
        Parameter(help="Number of recent tokens kept verbatim. Default: the strategy's choice."),
    ] = None,
    dialect: Dialect = AUTO,
    tokenizer: Tokenizer = tokens.DEFAULT,
    out: OutOrFolder = None,
    ledger: Annotated[
        Path | None, Parameter(help="Write the removed content here, for `enfold restore`.")
    ] = None,
    dry_run: Annotated[
        bool, Parameter(help="Only show the expected result and its cost; call no model.")
    ] = False,
    jobs: Jobs = None,
    engine: EngineName = LOCAL,
    json: Annotated[
        bool, Parameter(help="Print messages, report, ledger and receipt as one JSON object.")
    ] = False,
) -> None:
    """Condense conversations, with ledgers to restore them."""
    options = CondenseOptions(
        tokenizer=tokens.get(tokenizer).name, target=target, window=window, keep_tokens=keep_tokens
    )
    settings = _settings(preset, strategy, config)
    if profile is not None:
        options = replace(options, prices=asyncio.run(_prices(profile)))
    work = CondenseTask(settings, options, dialect, profile)
    if dry_run:
        _put_previews(work, files, json=json)
        return
    if is_bulk(files, out):
        folder = folder_for(files, out, ledger)
        apart = [path for path in (folder, ledger) if path is not None]
        found = layout.find_files([Path(file) for file in files], without=apart)
        places = layout.condense_paths(found, folder, ledger)
        command = BulkCommand(work, found, places, folder, "Condensing")
        command.run(jobs, json=json, engine=engine)
        return
    if engine != LOCAL:
        raise ConfigError(f"--engine {engine} is for many files; name a folder with --out")
    given = open_input(next(iter(files), STANDARD_INPUT))
    with working(f"Condensing {given.name}"):
        result = asyncio.run(work.condense(_only(given, dialect)))
    _write(result, None if out is None else Path(out), ledger, json=json)
    if not json:
        kept = result.receipt if ledger is not None else result.receipt.without_ledger()
        say(f"{result.report}\n{kept}")
        if ledger is None and result.receipt.total.restorable:
            say(NO_LEDGER)


def _put_previews(work: CondenseTask, files: Sequence[str], *, json: bool) -> None:
    """Print the expected result for every conversation of the files."""
    for given in map(open_input, files or (STANDARD_INPUT,)):
        for position, transcript in enumerate(given.transcripts(dialect=work.dialect), 1):
            expected = asyncio.run(work.preview(transcript))
            if json:
                put_json(expected)
            else:
                name = transcript.id or f"{given.name}, conversation {position}"
                put(f"{name}: {describe_preview(expected)}")


def _settings(preset: str | None, strategy: str | None, config: str | None) -> Settings:
    """Return the chosen strategy and config, checked before any file is read."""
    found = None if preset is None else asyncio.run(_preset(preset))
    given = None if config is None else open_input(config).value()
    if config is not None and not isinstance(given, dict):
        raise InputError("expected an object, the strategy's config", place=config)
    name, configs = presets.choose(found, strategy, given)
    settings = Settings(strategy=name, strategy_config={name: configs})
    make_strategy(settings, local_summarizer())
    return settings


async def _prices(profile: str) -> Prices | None:
    """Return the prices of a profile's model; raise `NotFoundError` without such a profile."""
    async with open_engine() as engine:
        return (await engine.profiles.get(profile)).known_prices()


async def _preset(name: str) -> Preset:
    """Return a built-in preset, or one from the database."""
    if name in presets.BUILT_IN:
        return presets.get(name)
    async with open_engine() as engine:
        return await engine.presets.get(name)


def _only(given: InputFile, dialect: str) -> Transcript:
    transcripts = list(islice(given.transcripts(dialect=dialect), 2))
    if len(transcripts) != 1:
        found = "several conversations; they go into a folder: --out FOLDER/"
        raise InputError(found if transcripts else "no conversation in it", place=given.name)
    return transcripts[0]


def _write(result: Condensed, out: Path | None, ledger: Path | None, *, json: bool) -> None:
    """Write the ledger first: without it the conversation could not be restored."""
    value = dumps(to_json(result if json else result.messages)) + b"\n"
    restorable = dumps(to_json(result.ledger)) + b"\n"
    contents = ((ledger, restorable), (out, value))
    save(*((place, data) for place, data in contents if place is not None))
    if out is None:
        put_data(value, None)


restore_app = App(
    name="restore",
    usage="enfold restore --ledger LEDGER [OPTIONS] [FILES]",
    help_epilogue="""\
Messages added after condensing are kept. Altered messages stay as they are and
are named on standard error; everything else is restored and written, and the
exit code is 1. Another conversation is refused with exit code 2.

Many files, or a file of many conversations, go into the folder that --out
names; the ledger of each is FILE.ledger in the same folder, or in the folder
that --ledger names. Start a stopped run again to continue it.

Examples:
  enfold restore small.json --ledger chat.ledger > chat.json
  enfold restore smaller/ --out chats-again/""",
)


@restore_app.default
def restore(
    *files: Annotated[
        str,
        Parameter(
            help="The condensed conversation; - is standard input. Several, or folders of them, "
            "go into a folder."
        ),
    ],
    ledger: Annotated[
        str | None,
        Parameter(
            help="The ledger from `enfold condense --ledger`. Optional for many files.",
            metavar="LEDGER",
        ),
    ] = None,
    out: OutOrFolder = None,
    jobs: Jobs = None,
    json: Annotated[bool, Parameter(help="For many files, print a line of JSON for each.")] = False,
) -> None:
    """Restore condensed conversations."""
    if is_bulk(files, out):
        ledgers = None if ledger is None else Path(ledger)
        folder = folder_for(files, out, ledgers)
        found = layout.find_files([Path(file) for file in files], without=[folder])
        places = layout.restore_paths(found, folder, ledgers)
        BulkCommand(RestoreTask(), found, places, folder, "Restoring").run(jobs, json=json)
        return
    if ledger is None:
        raise ConfigError("--ledger is missing: name the file of `enfold condense --ledger`")
    given, written = open_input(next(iter(files), STANDARD_INPUT)), open_input(ledger)
    with _naming(ledger):
        read = Ledger.from_json(written.value())
    with _naming(given.name):
        restored, altered = restore_unaltered(given.value(), read)
    put_value(restored, None if out is None else Path(out))
    if altered:
        raise UnfinishedError(f"{given.name}: {describe_altered(altered)}")


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Add the file's name to errors raised inside."""
    try:
        yield
    except RestoreError as error:
        raise RestoreError(f"{name}: {error}") from None
    except InputError as error:
        raise error if error.place else error.at(name) from None
