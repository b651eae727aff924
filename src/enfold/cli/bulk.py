"""Many files at once: what `condense` and `restore` share when they write into a folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter
from cyclopts.validators import Number

from enfold.bulk.crew import cores, jobs_for
from enfold.bulk.layout import Found, Place
from enfold.bulk.running import Outcome, Run
from enfold.bulk.work import Tally, Work
from enfold.cli.reading import STANDARD_INPUT
from enfold.cli.screen import advancing, put_json, say
from enfold.errors import ConfigError, UnfinishedError
from enfold.wording import number

OutOrFolder: TypeAlias = Annotated[
    str | None,
    Parameter(
        help="The file to write, instead of standard output. For many files, or many "
        "conversations in one: the folder; FOLDER/ is one also if it is not there yet.",
        metavar="PATH",
    ),
]
Jobs: TypeAlias = Annotated[
    int | None,
    Parameter(
        help="Into a folder: so many processes work at once. If unset: one for each core, fewer "
        "for little.",
        validator=Number(gte=1),
        metavar="N",
    ),
]
Engine: TypeAlias = Literal["local", "daft"]
EngineName: TypeAlias = Annotated[
    Engine,
    Parameter(
        help="Into a folder: who does the work. local: processes of this machine; daft: Daft, here "
        "or on a Ray cluster, for very large collections (enfold[bulk]).",
    ),
]
LOCAL: Engine = "local"


def is_bulk(files: Sequence[str], out: str | None) -> bool:
    """Whether many files are meant: several, a folder, or one whose results go into a folder."""
    if len(files) > 1 or any(Path(file).is_dir() for file in files if file != STANDARD_INPUT):
        return True
    return out is not None and (out.endswith("/") or Path(out).is_dir())


def folder_for(files: Sequence[str], out: str | None, ledgers: Path | None) -> Path:
    """The folder that results go into; `ConfigError` if there is none, or something else."""
    if STANDARD_INPUT in files or not files:
        raise ConfigError("standard input is one conversation, which cannot go into a folder")
    if out is None:
        raise ConfigError("many files go into a folder: name it with --out")
    for folder in (Path(out), ledgers):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise ConfigError(f"{folder} is a file; many files go into a folder")
    return Path(out)


@dataclass(frozen=True, slots=True)
class Errand:
    """What to do with many files, and how to speak of it."""

    work: Work
    found: Found
    places: Sequence[Place]
    out: Path
    verb: str
    """What is done, as the beginning of a line."""

    def run(self, jobs: int | None, *, json: bool, engine: Engine = LOCAL) -> None:
        """Do it; `UnfinishedError` at the end if a file failed."""
        size = sum(_size(place.source) for place in self.places)
        workers = jobs or (jobs_for(size) if engine == LOCAL else cores())
        outcomes: list[Outcome] = []
        with advancing(self.verb, size) as told:
            run = Run(self.work, self.places, self.out, workers, engine, told)
            with closing(run.outcomes()) as running:
                for outcome in running:
                    outcomes.append(outcome)
                    if json:
                        put_json(outcome.as_json())
        if not json:
            _tell(outcomes, self.found.others)
        failed = sum(outcome.error is not None for outcome in outcomes)
        if failed:
            raise UnfinishedError(f"{failed:,} of {number(len(outcomes), 'file')} failed")


def _tell(outcomes: Iterable[Outcome], others: int) -> None:
    """What came of it, in a few lines, and every file that failed."""
    tally, files, already = Tally(), 0, 0
    for outcome in outcomes:
        tally = tally.plus(outcome.tally)
        files += outcome.error is None
        already += outcome.status == "already"
        if outcome.error is not None:
            say(_failure(outcome))
    done = f"{number(files, 'file')} with {number(tally.conversations, 'conversation')}"
    change = f"{tally.tokens_before:,} → {tally.tokens_after:,} tokens ({-tally.reduction:+.0%})"
    asides = [f"{already:,} done already"] if already else []
    warnings = len(tally.warnings) + tally.more_warnings
    asides += [f"{number(warnings, 'warning')}, which --json shows"] if warnings else []
    asides += [f"{number(others, 'other file')} left alone"] if others else []
    say("; ".join((f"{done}: {change}" if tally.tokens_before else done, *asides)))


def _failure(outcome: Outcome) -> str:
    """The error, which as a rule names its file."""
    source, error = str(outcome.place.source), str(outcome.error)
    return f"Failed: {error}" if source in error else f"Failed: {source}: {error}"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
