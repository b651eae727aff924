"""What can be set of the lossless strategy."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal, TypeAlias

from enfold.strategies.configs import Option

Keep: TypeAlias = Literal["first", "last"]


@dataclass(frozen=True, slots=True)
class Encodings:
    """Which other ways of writing a result are used."""

    line_numbers: Annotated[bool, Option("Line numbers without padding, a tab after them")] = True
    paths: Annotated[bool, Option("A path once above the lines that begin with it")] = True
    json: Annotated[bool, Option("JSON without blanks between its values")] = True
    tables: Annotated[bool, Option("Arrays of like objects as a table")] = True
    colours: Annotated[bool, Option("No escape sequences of a terminal")] = True
    progress: Annotated[bool, Option("Of a line that was overwritten only the end")] = True
    runs: Annotated[bool, Option("The same line many times in a row once")] = True
    blanks: Annotated[bool, Option("No blanks at the end of lines")] = True

    @property
    def names(self) -> frozenset[str]:
        """Those that are used."""
        return frozenset(each.name for each in fields(self) if getattr(self, each.name))


@dataclass(frozen=True, slots=True)
class Obsolete:
    """What counts as superseded, where that is taken out."""

    covered_reads: Annotated[bool, Option("Reads whose lines a later read shows unchanged")] = True
    stale_reads: Annotated[bool, Option("Reads whose lines a later read shows as they became")] = (
        True
    )
    todo_lists: Annotated[bool, Option("To-do lists that were written again")] = True
    commands: Annotated[bool, Option("Output of commands that were run again")] = True


@dataclass(frozen=True, slots=True)
class LosslessConfig:
    """How a view is made smaller without loss."""

    deduplicate_file_reads: Annotated[
        bool, Option("Point to the message that shows a result already")
    ] = True
    deduplicate_blocks: Annotated[
        bool, Option("Point to the lines that another text shows already")
    ] = True
    consolidate_tool_results: Annotated[
        bool, Option("One outcome for listings, searches and commands that were repeated")
    ] = True
    remove_obsolete_state: Annotated[bool, Option("Take out what later results supersede")] = False
    reencode: Annotated[bool, Option("Write results in a way that takes fewer tokens")] = True
    encodings: Annotated[Encodings, Option("Which ways of writing are used")] = Encodings()
    obsolete: Annotated[Obsolete, Option("What counts as superseded")] = Obsolete()
    keep: Annotated[Keep, Option("Which of several equal texts stays in view")] = "first"
    min_saving: Annotated[int, Option("Tokens that a marker must save at least", least=1)] = 8
