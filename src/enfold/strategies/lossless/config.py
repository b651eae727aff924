"""What can be set of the lossless strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, TypeAlias

from enfold.errors import InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import ToolCall
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


Kind: TypeAlias = Literal["read", "edit", "list", "search", "command", "todo", "other"]

OPERATIONS: frozenset[Kind] = frozenset({"list", "search", "command"})
"""What is consolidated when it was done again."""

_NAMES: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    ("todo", ("todo", "update_plan", "tasklist", "task_list")),
    ("edit", ("edit", "write", "replace", "patch", "create", "insert")),
    ("search", ("grep", "search", "ripgrep", "find_in")),
    ("list", ("glob", "list", "find", "tree", "ls")),
    ("command", ("bash", "shell", "exec", "run", "command", "terminal")),
    ("read", ("read", "view", "open", "cat")),
)
"""What names of tools contain, the more telling first."""
_NOTES = frozenset(
    {"description", "explanation", "justification", "timeout", "timeout_ms", "yield_time_ms"}
)
"""Arguments that say why something is done, or how long that may take, and not what."""
_PATHS = ("file_path", "path", "filename", "file", "target_file", "absolute_path")


def kind_of(call: ToolCall) -> Kind:
    """What the call does; `other` where its name does not tell."""
    name = call.name.lower()
    return next((kind for kind, words in _NAMES if any(word in name for word in words)), "other")


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    """The call's arguments as an object; empty where they are none."""
    value: Any = call.arguments
    if isinstance(value, str):
        try:
            value = loads(value or "{}")
        except InputError:
            return {}
    return value if isinstance(value, Mapping) else {}


def identity_of(call: ToolCall) -> tuple[str, str]:
    """What is the same for calls that ask for the same, whatever they say about it."""
    arguments = arguments_of(call)
    if not arguments:
        return call.name, str(call.arguments)
    return call.name, dump_text({key: arguments[key] for key in arguments if key not in _NOTES})


def path_of(call: ToolCall) -> str | None:
    """The file that the call is about."""
    arguments = arguments_of(call)
    found = (arguments.get(key) for key in _PATHS)
    return next((path for path in found if isinstance(path, str) and path), None)
