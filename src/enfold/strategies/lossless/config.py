"""The config of the lossless strategy, and what tool calls do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from pydantic import Field

from enfold.errors import InputError
from enfold.fields import CamelModel
from enfold.jsontext import dump_text, loads
from enfold.messages import ToolCall

Keep: TypeAlias = Literal["first", "last"]

MIN_SAVING = 12


class Encodings(CamelModel):
    """The shorter ways to write a result."""

    line_numbers: bool = Field(
        default=True, description="Every fifth line number of a file, without padding"
    )
    paths: bool = Field(default=True, description="The file of found lines once, above them")
    trees: bool = Field(default=True, description="Lists of paths and of folders as a tree")
    details: bool = Field(
        default=True, description="The usual rights, owner and date of listed files once"
    )
    frames: bool = Field(default=True, description="Frames of a Python traceback in few words")
    lists: bool = Field(default=True, description="Names of a listing on one line")
    # BaseModel has a method named json.
    json_: bool = Field(
        default=True, alias="json", description="JSON without spaces between values"
    )
    tables: bool = Field(default=True, description="Arrays of similar objects as a table")
    colours: bool = Field(default=True, description="No colours and other escape sequences")
    progress: bool = Field(default=True, description="Only the last state of an overwritten line")
    runs: bool = Field(default=True, description="A line that is repeated in a row only once")
    blanks: bool = Field(default=True, description="No spaces at the end of lines")
    tags: bool = Field(default=True, description="Labels in place of tags around an output")

    @property
    def names(self) -> frozenset[str]:
        """The encodings in use."""
        return frozenset(
            name.removesuffix("_") for name in type(self).model_fields if getattr(self, name)
        )


class Obsolete(CamelModel):
    """The kinds of superseded results."""

    covered_reads: bool = Field(default=True, description="Lines that a later read shows unchanged")
    stale_reads: bool = Field(default=True, description="Lines that a later read shows changed")
    todo_lists: bool = Field(default=True, description="To-do lists that were written again")
    commands: bool = Field(default=True, description="Results of commands that were repeated")


class LosslessConfig(CamelModel):
    """The config of the lossless strategy."""

    deduplicate_file_reads: bool = Field(
        default=True, description="Point to the message that shows the same result"
    )
    deduplicate_blocks: bool = Field(
        default=True, description="Point to equal lines in another text"
    )
    consolidate_tool_results: bool = Field(
        default=True, description="Keep one result of repeated listings, searches and commands"
    )
    remove_obsolete_state: bool = Field(
        default=False,
        description="Take out results that later ones supersede; they can be restored",
    )
    reencode: bool = Field(default=True, description="Write results with fewer tokens")
    encodings: Encodings = Field(default=Encodings(), description="The ways of writing in use")
    obsolete: Obsolete = Field(default=Obsolete(), description="The kinds of superseded results")
    keep: Keep = Field(default="first", description="Which of several equal texts stays in view")
    min_saving: int = Field(
        default=MIN_SAVING, description="Minimum tokens that a marker saves", ge=1
    )
    preserve_first_count: int = Field(
        default=1, description="First messages in which only repeats are replaced", ge=0
    )
    preserve_recent_count: int = Field(
        default=3, description="Newest messages in which only repeats are replaced", ge=0
    )


ToolKind: TypeAlias = Literal["read", "edit", "list", "search", "command", "todo", "other"]

OPERATIONS: frozenset[ToolKind] = frozenset({"list", "search", "command"})
"""Operations that are consolidated when they are repeated."""

_NAMES: tuple[tuple[ToolKind, tuple[str, ...]], ...] = (
    ("todo", ("todo", "update_plan", "tasklist", "task_list")),
    ("edit", ("edit", "write", "replace", "patch", "create", "insert")),
    ("search", ("grep", "search", "ripgrep", "find_in")),
    ("list", ("glob", "list", "find", "tree", "ls")),
    ("command", ("bash", "shell", "exec", "run", "command", "terminal")),
    ("read", ("read", "view", "open", "cat")),
)
"""Words in names of tools, the clearest first."""
_NOTES = frozenset(
    {"description", "explanation", "justification", "timeout", "timeout_ms", "yield_time_ms"}
)
"""Arguments that say why something is done, or how long that may take, and not what."""
_COMMANDS = ("command", "cmd")
_BETWEEN_COMMANDS = re.compile(r"&&|\|\||[;|\n]")
_LOOK = re.compile(
    r"(?:git (?:status|diff|log|show|branch|remote|rev-parse|ls-files|stash list)"
    r"|ls|ll|pwd|cd|cat|head|tail|nl|wc|sort|uniq|tree|stat|file|du|df|ps|env|printenv|which|whoami"
    r"|uname|date|find|fd|grep|egrep|rg|ag|sed -n|awk|cut|jq|echo|true)(?=\s|$)(?!.*[^12&]>\s*\w)"
)
"""Shell commands that only look: they show the state of files, of git or of the machine."""
_CONTENTS = ("content", "file_text", "contents", "text")
_PATHS = ("file_path", "path", "filename", "file", "target_file", "absolute_path")


def kind_of(call: ToolCall) -> ToolKind:
    """Return what a call does; `other` if its name does not tell."""
    return _kind_of_tool(call.name)


@lru_cache(maxsize=1_024)
def _kind_of_tool(name: str) -> ToolKind:
    lower = name.lower()
    return next((kind for kind, words in _NAMES if any(word in lower for word in words)), "other")


def arguments_of(call: ToolCall) -> Mapping[str, Any]:
    """The call's arguments as an object; empty where they are none."""
    value: Any = call.arguments
    if isinstance(value, str):
        try:
            value = loads(value or "{}")
        except InputError:
            return {}
    return value if isinstance(value, Mapping) else {}


def shows_state(call: ToolCall) -> bool:
    """Return True if a call only looks at something, so that a later look supersedes it.

    Other commands do something, and what came of it is a fact of that time: a test run is one.
    """
    if kind_of(call) in {"list", "search"}:
        return True
    arguments = arguments_of(call)
    commands = (arguments.get(key) for key in _COMMANDS)
    text = next((each for each in commands if isinstance(each, str)), "")
    return bool(text) and all(
        _LOOK.match(step.strip()) for step in _BETWEEN_COMMANDS.split(text) if step.strip()
    )


def identity_of(call: ToolCall) -> tuple[str, str]:
    """Return a key that is equal for calls that do the same; notes in arguments do not count."""
    arguments = arguments_of(call)
    if not arguments:
        return call.name, str(call.arguments)
    return call.name, dump_text({key: arguments[key] for key in arguments if key not in _NOTES})


def content_written(call: ToolCall) -> str | None:
    """Return the whole content that a call writes to a file; None for other calls."""
    if not any(word in call.name.lower() for word in ("write", "create")):
        return None
    arguments = arguments_of(call)
    found = (arguments.get(key) for key in _CONTENTS)
    return next((text for text in found if isinstance(text, str)), None)


def path_of(call: ToolCall) -> str | None:
    """The file that the call is about."""
    arguments = arguments_of(call)
    found = (arguments.get(key) for key in _PATHS)
    return next((path for path in found if isinstance(path, str) and path), None)
