"""Digests: a tool call and its result in one line: which tool, on what, and how it ended.

Raw output is never quoted at length. What counts in it is a line that names an error, a line that
tells the result of a run, all of it if it is short, or the plain values of a JSON object.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from enfold.errors import InputError
from enfold.jsontext import dump_text, loads
from enfold.messages import Data, Text, ToolCall, ToolResult
from enfold.summaries.local.lexicon import Cue

TARGET_LENGTH = 120
OUTCOME_LENGTH = 180
VALUE_LENGTH = 60
"""In characters: more of a call, a result or a value is no digest."""
PENDING = "no result yet"
LISTED = 6
"""How many targets one line lists."""
_LONG_FOLDER = 12
"""Characters from which a folder that several targets share is written once."""
_LOOKED_AT = 4_000
"""Characters at each end of a result in which its telling line is looked for."""
_LONGEST_LINE = 300
_LONGEST_JSON = 20_000
_DEEPEST = 2
_NESTED_LISTED = 3

_TELLING_FIRST = (
    "file_path",
    "path",
    "filename",
    "file",
    "notebook_path",
    "command",
    "cmd",
    "script",
    "query",
    "pattern",
    "url",
    "expression",
    "sql",
    "subject",
    "title",
    "name",
    "id",
)
"""Arguments that alone tell what a call is about."""
_CHANGES = re.compile(
    r"write|edit|create|update|delete|remove|insert|apply|patch|commit|push|send|book|cancel|move|"
    r"rename|replace|migrate|deploy|install|submit|post|transfer|exchange|return|modify|add|set",
    re.IGNORECASE,
)
"""In the name of a tool that does not only look."""
_FAILURE = re.compile(
    r"\b(?:[A-Z]\w*(?:Error|Exception)\b|error(?:\[\w+\])?:|Error\b|ERROR\b|fatal:|"
    r"FAIL(?:ED|URE)?\b|Traceback|panic:|[Ee]xit (?:code|status):? [1-9]|command not found|"
    r"No such file|[Nn]ot found|[Pp]ermission denied|denied|refused|cannot |can't |could not |"
    r"unknown (?:flag|option|command))|错误|失败"
)
_CERTAIN_FAILURE = re.compile(
    r"^\s*(?:Error\b|error:|fatal:|Traceback|panic:|Exit code [1-9]|[A-Z]\w*(?:Error|Exception):|"
    r"<tool_use_error>|bash: )"
)
_FAULT_AT_THE_END = re.compile(
    r"\berror(?:\[\w+\])?:|\bError:|\*\*\* .*Error|[a-z](?:Error|Exception):|\bFAILED\b|\bfatal:|"
    r"\bpanic:|[Ee]xit (?:code|status):? [1-9]"
)
"""In the last lines of an output that the tool itself did not call a failure."""
_LAST_LINES = 6
_TRACEBACK = "Traceback"
_RUN = re.compile(
    r"\b\d[\d,.]*\s+(?:passed|failed|errors?|warnings?|tests?|files?|lines?|matches|insertions?|"
    r"rows?|results?|items?|vulnerabilities)\b(?![./\w-])|^(?:ok|PASS|FAIL|BUILD)\b|"
    r"\b[Ss]uccess(?:fully)?\b"
)
_NUMBERED_LINE = re.compile(r"^\s*\d+[→|:\t]")


class Digest(NamedTuple):
    """One tool call, told shortly."""

    message: int
    """The index of the message with the result, or with the call where there is none."""
    tool: str
    """Its name. Empty where the call is not known."""
    target: str
    outcome: str
    """Empty where the result says nothing beyond having worked."""
    failed: bool

    @property
    def cues(self) -> int:
        """What fails or changes something matters more than what only looks."""
        if self.failed:
            return Cue.FAULT
        return Cue.OUTCOME if _CHANGES.search(self.tool) else 0

    @property
    def text(self) -> str:
        """The line; empty where nothing at all is known."""
        outcome = self.outcome
        if self.failed:
            outcome = f"failed: {outcome}" if outcome else "failed"
        said = self.target or outcome or self.tool
        parts = (self.tool or "tool", self.target, outcome and f"→ {outcome}")
        return " ".join(filter(None, parts)) if said else ""


def digest(call: ToolCall | None, result: ToolResult, message: int) -> Digest:
    """The line for a result, with its call where that is known."""
    tool = call.name if call else result.name
    target = describe_arguments(call.arguments) if call else ""
    text = _text_of(result)
    failed = result.is_error or _CERTAIN_FAILURE.match(text[:_LONGEST_LINE]) is not None
    outcome = _fault_line(text) if failed else _outcome(text)
    return Digest(message, tool, target, outcome, failed)


def describe_arguments(arguments: str | Mapping[str, Any]) -> str:
    """What a call was about, from its most telling argument or from all the short ones."""
    values = _object_of(arguments) if isinstance(arguments, str) else arguments
    if values is None:
        return shorten(str(arguments), TARGET_LENGTH)
    for key in _TELLING_FIRST:
        value = values.get(key)
        if isinstance(value, str) and value.strip():
            return shorten(value, TARGET_LENGTH)
    return shorten(", ".join(_plain_values(values)), TARGET_LENGTH)


def gather(digests: Iterable[Digest]) -> Iterator[Digest]:
    """Calls of one tool that merely worked share a line; the others have one each."""
    waiting: dict[str, list[Digest]] = {}
    for each in digests:
        if each.outcome or each.failed or not each.target:
            yield each
            continue
        same = waiting.setdefault(each.tool, [])
        if all(each.target != other.target for other in same):
            same.append(each)
        if len(same) == LISTED:
            yield _joined(waiting.pop(each.tool))
    yield from map(_joined, waiting.values())


def shorten(text: str, length: int) -> str:
    """One line of at most that many characters."""
    line = " ".join(text[: length * 4].split())
    return line if len(line) <= length else f"{line[: length - 1].rstrip()}…"


def _joined(same: list[Digest]) -> Digest:
    """One line for all; a folder that they share is written once, as in a shell."""
    targets = [each.target for each in same]
    folder = _shared_folder(targets) if len(same) > 1 else ""
    if len(folder) < _LONG_FOLDER:
        return same[-1]._replace(target=", ".join(targets))
    inside = ", ".join(target.removeprefix(folder) for target in targets)
    return same[-1]._replace(target=f"{folder}{{{inside}}}")


def _shared_folder(targets: list[str]) -> str:
    """The folder that all the paths begin with, up to its slash; empty if they are no paths."""
    first, last = min(targets), max(targets)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    folder = first[: first.rfind("/", 0, same) + 1]
    return "" if " " in folder else folder


def _text_of(result: ToolResult) -> str:
    return "\n".join(
        part.text if isinstance(part, Text) else dump_text(part.value)
        for part in result.parts
        if isinstance(part, Text | Data)
    )


def _fault_line(text: str) -> str:
    """The line that names the error: the last of a traceback, else the first that does."""
    lines = _telling_lines(text)
    named = [line for line in lines if _FAILURE.search(line)]
    if not named:
        return shorten(lines[0], OUTCOME_LENGTH) if lines else ""
    explained = [line for line in named if not _CERTAIN_FAILURE.match(line) or ":" in line]
    is_trace = _TRACEBACK in text[:_LOOKED_AT]
    return shorten((explained or named)[-1 if is_trace else 0], OUTCOME_LENGTH)


def _outcome(text: str) -> str:
    text = text.strip()
    if text.startswith(("{", "[")) and len(text) <= _LONGEST_JSON:
        values = _json_outcome(text)
        if values:
            return values
    if len(text) <= OUTCOME_LENGTH and "\n" not in text:
        return shorten(text, OUTCOME_LENGTH)
    if _NUMBERED_LINE.match(text):
        return ""
    lines = _telling_lines(text)
    told = [line for line in lines if _RUN.search(line)]
    told = told or [line for line in lines[-_LAST_LINES:] if _FAULT_AT_THE_END.search(line)]
    return shorten(told[-1], OUTCOME_LENGTH) if told else ""


def _telling_lines(text: str) -> list[str]:
    """The lines near both ends that are neither empty nor endless."""
    if len(text) > 2 * _LOOKED_AT:
        text = f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    return [line for line in text.splitlines() if line.strip() and len(line) <= _LONGEST_LINE]


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
    """`key=value` for everything short and plain, then for what is nested."""
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
        value = [each for each in value[:_NESTED_LISTED] if isinstance(each, dict)]
    else:
        value = [value]
    if depth <= _DEEPEST:
        for each in value:
            yield from _plain_values(each, depth)
