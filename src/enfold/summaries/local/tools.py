"""Tool calls in one line each: the tool, its target and the outcome.

Output is not quoted at length. The outcome is a line that names an error, a line with the result of
a run, all of a short output, or the plain values of a JSON object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from enfold.errors import InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import Data, Text, ToolCall, ToolResult
from enfold.text.cues import Cue

TARGET_LENGTH = 120
OUTCOME_LENGTH = 180
VALUE_LENGTH = 60
"""Characters of a call, a result and a value."""
PENDING = "no result yet"
MAX_TARGETS = 6
"""Targets in one line."""
_LONG_FOLDER = 12
"""Characters. A shared folder of at least this length is written once."""
_SEARCHED = 4_000
"""Characters at each end of a result that are searched for the outcome."""
_MAX_LINE_LENGTH = 300
_MAX_JSON_LENGTH = 20_000
_MAX_DEPTH = 2
_MAX_NESTED = 3

_MAIN_ARGUMENTS = (
    *("file_path", "path", "filename", "file", "notebook_path", "command", "cmd", "script"),
    *("query", "pattern", "url", "expression", "sql", "subject", "title", "name", "id"),
)
"""Arguments that identify a call on their own, the best first."""
CHANGES = re.compile(
    r"write|edit|create|update|delete|remove|insert|apply|patch|commit|push|send|book|cancel|move|"
    r"rename|replace|migrate|deploy|install|submit|post|transfer|exchange|return|modify|add|set",
    re.IGNORECASE,
)
"""Names of tools that change something."""
_FAILURE = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception)\b|error(?:\[\w+\])?:|Error\b|ERROR\b|fatal:|"
    r"FAIL(?:ED|URE)?\b|Traceback|panic:|[Ee]xit (?:code|status):? [1-9]|command not found|"
    r"No such file|[Nn]ot found|[Pp]ermission denied|denied|refused|cannot |can't |could not |"
    r"unknown (?:flag|option|command))|错误|失败"
)
_FAILURE_START = re.compile(
    r"^\s*(?:Error\b|error:|fatal:|Traceback|panic:|Exit code [1-9]|[A-Z]\w*(?:Error|Exception):|"
    r"<tool_use_error>|bash: )"
)
_FAILURE_END = re.compile(
    r"\berror(?:\[\w+\])?:|\bError:|\*\*\* .*Error|[a-z](?:Error|Exception):|\bFAILED\b|\bfatal:|"
    r"\bpanic:|[Ee]xit (?:code|status):? [1-9]"
)
"""A failure in the last lines of an output that the tool did not mark as an error."""
_LAST_LINES = 6
_RUN_RESULT = re.compile(
    r"\b\d[\d,.]*\s+(?:passed|failed|errors?|warnings?|tests?|files?|lines?|matches|insertions?|"
    r"rows?|results?|items?|vulnerabilities)\b(?![./\w-])|^(?:ok|PASS|FAIL|BUILD)\b|"
    r"\b[Ss]uccess(?:fully)?\b"
)
_NUMBERED_LINE = re.compile(r"^\s*\d+[→|:\t]")


class ToolDigest(NamedTuple):
    """A tool call and its result in one line."""

    message: int
    """The index of the message with the result, or of the last message if there is none."""
    tool: str
    """The name. Empty if the call is unknown."""
    target: str
    outcome: str
    """Empty if the result shows only that the call succeeded."""
    failed: bool

    @property
    def cues(self) -> int:
        """The cue of a call that failed or changed something."""
        if self.failed:
            return Cue.FAULT
        return Cue.OUTCOME if CHANGES.search(self.tool) else 0

    @property
    def text(self) -> str:
        """The line; empty if nothing is known about the call."""
        outcome = self.outcome
        if self.failed:
            outcome = f"failed: {outcome}" if outcome else "failed"
        if not (self.target or outcome or self.tool):
            return ""
        parts = (self.tool or "tool", self.target, outcome and f"→ {outcome}")
        return " ".join(filter(None, parts))


def digest_result(call: ToolCall | None, result: ToolResult, message: int) -> ToolDigest:
    """Return the digest of a result and, if it is known, its call."""
    tool = call.name if call else result.name
    target = describe_arguments(call.arguments) if call else ""
    text = text_of_result(result)
    failed = result.is_error or _FAILURE_START.match(text[:_MAX_LINE_LENGTH]) is not None
    outcome = _fault_line(text) if failed else _outcome(text)
    return ToolDigest(message, tool, target, outcome, failed)


def describe_arguments(arguments: str | Mapping[str, Any]) -> str:
    """Return the main argument of a call, or all short arguments if none identifies it."""
    values = _object_of(arguments) if isinstance(arguments, str) else arguments
    if values is None:
        return shorten(str(arguments), TARGET_LENGTH)
    for key in _MAIN_ARGUMENTS:
        value = values.get(key)
        if isinstance(value, str) and value.strip():
            return shorten(value, TARGET_LENGTH)
    return shorten(", ".join(_plain_values(values)), TARGET_LENGTH)


def arguments_of(arguments: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call by name; none if they are not an object."""
    if isinstance(arguments, str):
        return _object_of(arguments) or {}
    return arguments


def pending(call: ToolCall, message: int) -> ToolDigest:
    """Return the digest of a call without a result."""
    return ToolDigest(message, call.name, describe_arguments(call.arguments), PENDING, failed=False)


def join_digests(digests: Iterable[ToolDigest]) -> Iterator[ToolDigest]:
    """Yield the digests; calls of one tool without an outcome share a line."""
    waiting: dict[str, list[ToolDigest]] = {}
    for each in digests:
        if each.outcome or each.failed or not each.target:
            yield each
            continue
        same = waiting.setdefault(each.tool, [])
        if all(each.target != other.target for other in same):
            same.append(each)
        if len(same) == MAX_TARGETS:
            yield _joined(waiting.pop(each.tool))
    yield from map(_joined, waiting.values())


def shorten(text: str, length: int) -> str:
    """Return the text in one line of at most `length` characters, cut between words."""
    line = " ".join(text[: length * 4].split())
    if len(line) <= length:
        return line
    cut = line.rfind(" ", length // 2, length)
    return f"{line[: cut if cut > 0 else length - 1].rstrip()}…"


def _joined(same: list[ToolDigest]) -> ToolDigest:
    """Return one digest for all; a folder that they share is written once, as in a shell."""
    targets = [each.target for each in same]
    folder = _shared_folder(targets) if len(same) > 1 else ""
    if len(folder) < _LONG_FOLDER:
        return same[-1]._replace(target=", ".join(targets))
    inside = ", ".join(target.removeprefix(folder) for target in targets)
    return same[-1]._replace(target=f"{folder}{{{inside}}}")


def _shared_folder(targets: list[str]) -> str:
    """Return the folder that all paths begin with, and its slash; empty if they are not paths."""
    first, last = min(targets), max(targets)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    folder = first[: first.rfind("/", 0, same) + 1]
    return "" if " " in folder else folder


def text_of_result(result: ToolResult) -> str:
    """Return the text of a result."""
    return "\n".join(
        part.text if isinstance(part, Text) else dump_text(part.value)
        for part in result.parts
        if isinstance(part, Text | Data)
    )


def _fault_line(text: str) -> str:
    """Return the line that names the error: the last of a traceback, otherwise the first."""
    lines = _outer_lines(text)
    named = [line for line in lines if _FAILURE.search(line)]
    if not named:
        return shorten(lines[0], OUTCOME_LENGTH) if lines else ""
    explained = [line for line in named if not _FAILURE_START.match(line) or ":" in line]
    is_trace = "Traceback" in text[:_SEARCHED]
    return shorten((explained or named)[-1 if is_trace else 0], OUTCOME_LENGTH)


def _outcome(text: str) -> str:
    text = text.strip()
    if text.startswith(("{", "[")) and len(text) <= _MAX_JSON_LENGTH:
        values = _json_outcome(text)
        if values:
            return values
    if len(text) <= OUTCOME_LENGTH and "\n" not in text:
        return shorten(text, OUTCOME_LENGTH)
    if _NUMBERED_LINE.match(text):
        return ""
    lines = _outer_lines(text)
    results = [line for line in lines if _RUN_RESULT.search(line)]
    results = results or [line for line in lines[-_LAST_LINES:] if _FAILURE_END.search(line)]
    return shorten(results[-1], OUTCOME_LENGTH) if results else ""


def _outer_lines(text: str) -> list[str]:
    """Return the lines near both ends that are neither empty nor very long."""
    if len(text) > 2 * _SEARCHED:
        text = f"{text[:_SEARCHED]}\n{text[-_SEARCHED:]}"
    return [line for line in text.splitlines() if line.strip() and len(line) <= _MAX_LINE_LENGTH]


def _json_outcome(text: str) -> str:
    try:
        value = loads(text)
    except InputError:
        return ""
    if isinstance(value, list):
        return f"{len(value)} entries"
    return shorten(", ".join(_plain_values(value)), OUTCOME_LENGTH) if value else ""


def _object_of(text: str) -> Mapping[str, Any] | None:
    try:
        value = loads(text)
    except InputError:
        return None
    return value if isinstance(value, dict) else None


def _plain_values(value: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield `key=value` for plain values, then for nested ones."""
    nested = {key: inner for key, inner in value.items() if isinstance(inner, dict | list)}
    for key, inner in value.items():
        if key not in nested and inner not in (None, "", False):
            yield f"{key}={shorten(str(inner), VALUE_LENGTH)}"
    for key, inner in nested.items():
        yield from _nested_values(key, inner, depth + 1)


def _nested_values(key: str, value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, list):
        plain = [str(each) for each in value if isinstance(each, str | int | float)]
        if plain:
            yield f"{key}={shorten(', '.join(plain), VALUE_LENGTH)}"
        value = [each for each in value[:_MAX_NESTED] if isinstance(each, dict)]
    else:
        value = [value]
    if depth <= _MAX_DEPTH:
        for each in value:
            yield from _plain_values(each, depth)
