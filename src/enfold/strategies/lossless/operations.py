"""Operations: what kind of thing a call does, by the name of its tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from enfold.errors import InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import ToolCall

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
