"""What can be set of the lossless strategy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal, TypeAlias

from enfold.strategies.configs import Option

Keep: TypeAlias = Literal["first", "last"]

MIN_SAVING = 12


@dataclass(frozen=True, slots=True)
class Encodings:
    """Which other ways of writing a result are used."""

    line_numbers: Annotated[bool, Option("Line numbers without padding, a tab after them")] = True
    paths: Annotated[bool, Option("A path once, above the lines that begin with it")] = True
    json: Annotated[bool, Option("JSON without blanks between its values")] = True
    tables: Annotated[bool, Option("Arrays of like objects as a table")] = True
    colours: Annotated[bool, Option("No colours and other escape sequences")] = True
    progress: Annotated[bool, Option("Of an overwritten line only what was written last")] = True
    runs: Annotated[bool, Option("A line that stands there many times in a row only once")] = True
    blanks: Annotated[bool, Option("No blanks at the end of lines")] = True

    @property
    def names(self) -> frozenset[str]:
        """Those that are used."""
        return frozenset(each.name for each in fields(self) if getattr(self, each.name))


@dataclass(frozen=True, slots=True)
class Obsolete:
    """What counts as superseded, where that is taken out of view."""

    covered_reads: Annotated[bool, Option("Lines that a later read shows unchanged")] = True
    stale_reads: Annotated[bool, Option("Lines that a later read shows as they became")] = True
    todo_lists: Annotated[bool, Option("To-do lists that were written again")] = True
    commands: Annotated[bool, Option("Outcomes of what was done again in the same way")] = True


@dataclass(frozen=True, slots=True)
class LosslessConfig:
    """What can be set of the lossless strategy."""

    deduplicate_file_reads: Annotated[
        bool, Option("Point to the message that shows a result already")
    ] = True
    deduplicate_blocks: Annotated[
        bool, Option("Point to the lines that another text shows already")
    ] = True
    consolidate_tool_results: Annotated[
        bool, Option("Keep one outcome of listings, searches and commands that were repeated")
    ] = True
    remove_obsolete_state: Annotated[
        bool, Option("Take out of view what later results supersede; it can be restored")
    ] = False
    reencode: Annotated[bool, Option("Write results in ways that take fewer tokens")] = True
    encodings: Annotated[Encodings, Option("Which ways of writing are used")] = Encodings()
    obsolete: Annotated[Obsolete, Option("What counts as superseded")] = Obsolete()
    keep: Annotated[Keep, Option("Which of several equal texts stays in view")] = "first"
    min_saving: Annotated[int, Option("Tokens that a marker must save", least=1)] = MIN_SAVING
    preserve_first_count: Annotated[
        int, Option("First messages in which only repeats are replaced", least=0)
    ] = 1
    preserve_recent_count: Annotated[
        int, Option("Newest messages in which only repeats are replaced", least=0)
    ] = 3
