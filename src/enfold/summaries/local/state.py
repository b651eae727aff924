"""The state of an agent's work, read from its tool calls: files, tests, branch, errors, plan.

Each fact is one line that begins with its subject: a path, a command, `Branch`. A later line about
the same subject replaces an earlier one, so that the state is updated and does not grow.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from enfold.messages import Message, ToolCall, ToolResult
from enfold.summaries.local.units import (
    CHANGES,
    ToolDigest,
    arguments_of,
    digest_result,
    shorten,
    text_of_result,
)

STATE = "State"
ERRORS = "Errors and Fixes"
TRIED = "Tried Without Success"
NEXT = "Next Step"

_PATH_ARGUMENTS = ("file_path", "path", "filename", "file", "notebook_path", "target_file")
_COMMAND_ARGUMENTS = ("command", "cmd", "script")
_NEW_TEXT_ARGUMENTS = ("new_string", "new_str", "content", "file_text", "new_text", "insert_text")
_OLD_TEXT_ARGUMENTS = ("old_string", "old_str", "old_text")
_PLAN_ARGUMENTS = ("todos", "plan", "todo_list", "tasks")
_STEP_FIELDS = ("content", "step", "title", "task", "description")
_PATCHED = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.+?)\s*$", re.MULTILINE)
_WRITTEN = re.compile(r"(?:\bcat|\btee|\becho|\bprintf)\b[^|;&\n]*?>>?\s*([\w./~@+-]+\.\w+)")
_REPLACED = re.compile(r"\bsed\s+(?:-\w+\s+)*-i\b.*?\s([\w./~@+-]+\.\w+)\s*(?:$|[;&|\n])")
_TEST = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|nextest|"
    r"(?:go|cargo|npm|pnpm|yarn|bun|make|mvn|gradle|dotnet|mix|swift|deno|mise|just|task)"
    r"(?:\s+run)?\s+test)\b|\brun-?tests?\b|\btest:\w+"
)
_BRANCH = re.compile(r"\bgit (?:checkout|switch) (?:-[bcB] )?(?!-)([\w./-]+)")
_COMMITTED = re.compile(r"^\[([\w./-]+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] (.+)$", re.MULTILINE)
_READ_ONLY = re.compile(
    r"^\s*(?:cd [^&;]*&&\s*)?(?:ls|cat|head|tail|grep|rg|find|pwd|which|wc|tree|echo|sed -n|git "
    r"(?:status|log|diff|show|branch|blame)|less|stat|file|env|ps)\b"
)
_QUOTED = re.compile(r"`([^`]+)`")
_COMMAND_LENGTH = 100
_LINE_LENGTH = 100
_MAX_LINES = {STATE: 12, ERRORS: 6, TRIED: 4, NEXT: 2}
"""Lines of each section, the newest."""
_MAX_FILES = 8
_MAX_STEPS = 6


class StateLine(NamedTuple):
    """One fact about the state of the work."""

    section: str
    text: str
    message: int
    """The index of the message that it comes from."""


def subject_of(line: str) -> str:
    """Return the subject of a line: the command in it, or what stands before its first colon."""
    before = line.partition(": ")[0]
    command = _QUOTED.search(before)
    return command[1] if command else before


@dataclass(slots=True)
class _File:
    change: str
    message: int
    edits: int = 1


@dataclass(slots=True)
class _Run:
    """The last run of a command."""

    outcome: str
    message: int
    failed: bool
    error: str = ""
    """The last failure, also if a later run succeeded."""
    fixed_by: tuple[str, ...] = ()


@dataclass(slots=True)
class _Work:
    """The effects of the calls that were read so far."""

    files: dict[str, _File] = field(default_factory=dict)
    runs: dict[str, _Run] = field(default_factory=dict)
    tests: dict[str, None] = field(default_factory=dict)
    branch: tuple[str, int] | None = None
    commit: tuple[str, int] | None = None
    plan: tuple[tuple[str, ...], tuple[str, ...], int] | None = None
    """Steps in progress, steps to do, and the message."""

    def add(self, call: ToolCall, result: ToolResult, index: int) -> None:
        """Take a call and its result into account."""
        values = arguments_of(call.arguments)
        digest = digest_result(call, result, index)
        command = _command(values)
        text = text_of_result(result)
        if command:
            self._add_run(command, text, digest)
        if not digest.failed:
            patch = call.arguments if isinstance(call.arguments, str) else ""
            for path, change in _changes(call.name, values, command, patch):
                earlier = self.files.pop(path, None)
                edits = earlier.edits + 1 if earlier is not None else 1
                self.files[path] = _File(change, index, edits)
        plan = _plan(values)
        if plan is not None:
            self.plan = (*plan, index)

    def _add_run(self, command: str, text: str, digest: ToolDigest) -> None:
        line = shorten(command, _COMMAND_LENGTH)
        before = self.runs.pop(line, None)
        run = _Run(digest.outcome, digest.message, digest.failed)
        if digest.failed:
            run.error = digest.outcome
        elif before is not None and before.error:
            run.error = before.error
            run.fixed_by = before.fixed_by or tuple(
                path for path, file in self.files.items() if file.message > before.message
            )
        self.runs[line] = run
        if _TEST.search(command):
            self.tests.pop(line, None)
            self.tests[line] = None
        branch = _BRANCH.search(command)
        if branch and not digest.failed:
            self.branch = (branch[1], digest.message)
        for name, revision, subject in _COMMITTED.findall(text):
            self.branch = (name, digest.message)
            self.commit = (f"{revision} {shorten(subject, _LINE_LENGTH)}", digest.message)

    def lines(self) -> Iterator[StateLine]:
        """Yield the lines, those that are needed most first."""
        if self.plan is not None:
            doing, waiting, index = self.plan
            if doing:
                yield StateLine(NEXT, f"In progress: {'; '.join(doing)}", index)
            if waiting:
                yield StateLine(NEXT, f"To do: {'; '.join(waiting[:_MAX_STEPS])}", index)
        if self.branch is not None:
            yield StateLine(STATE, f"Branch: {self.branch[0]}", self.branch[1])
        if self.commit is not None:
            yield StateLine(STATE, f"Last commit: {self.commit[0]}", self.commit[1])
        for path, file in list(reversed(self.files.items()))[:_MAX_FILES]:
            times = f", {file.edits} edits" if file.edits > 1 else ""
            yield StateLine(STATE, f"{path}: {file.change}{times}", file.message)
        for line in list(reversed(self.tests))[:2]:
            run = self.runs[line]
            yield StateLine(STATE, f"Tests `{line}`: {_ending(run)}", run.message)
        yield from self._errors()
        others = [line for line in self.runs if line not in self.tests]
        for line in [line for line in others if not _READ_ONLY.match(line)][-2:]:
            run = self.runs[line]
            yield StateLine(STATE, f"Command `{line}`: {_ending(run)}", run.message)

    def _errors(self) -> Iterator[StateLine]:
        for line, run in reversed(self.runs.items()):
            if not run.error or _READ_ONLY.match(line):
                continue
            if run.failed:
                yield StateLine(TRIED, f"`{line}`: failed with {run.error}", run.message)
            else:
                edited = f" after {', '.join(run.fixed_by[-3:])} changed" if run.fixed_by else ""
                text = f"`{line}`: failed with {run.error}; it succeeded{edited}"
                yield StateLine(ERRORS, text, run.message)


def state_lines(messages: Sequence[Message]) -> list[StateLine]:
    """Return the lines about the state of the work; none without tool calls."""
    work = _Work()
    calls: dict[str, ToolCall] = {}
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls[part.id] = part
            elif isinstance(part, ToolResult) and part.call_id in calls:
                work.add(calls.pop(part.call_id), part, index)
    number: Counter[str] = Counter()
    found: list[StateLine] = []
    for line in work.lines():
        number[line.section] += 1
        if number[line.section] <= _MAX_LINES[line.section]:
            found.append(line)
    return found


def superseded(earlier: Iterable[tuple[str, str]], new: Iterable[StateLine]) -> Iterator[bool]:
    """Yield for each earlier line, given with its section, True if a new line replaces it."""
    new = tuple(new)
    subjects = {subject_of(line.text) for line in new}
    errors = {subject_of(line.text) for line in new if line.section == ERRORS}
    has_plan = any(line.section == NEXT for line in new)
    for section, text in earlier:
        if section == NEXT:
            yield has_plan
        elif section == ERRORS:
            yield subject_of(text) in errors
        else:
            yield section in {STATE, TRIED} and subject_of(text) in subjects


def _ending(run: _Run) -> str:
    if run.failed:
        return f"failed: {run.outcome}" if run.outcome else "failed"
    return run.outcome or "ended without an error"


def _command(values: Mapping[str, Any]) -> str:
    for name in _COMMAND_ARGUMENTS:
        value = values.get(name)
        if isinstance(value, str) and value.strip():
            return value.strip()
        if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            return " ".join(value)
    return ""


def _changes(
    tool: str, values: Mapping[str, Any], command: str, patch: str
) -> Iterator[tuple[str, str]]:
    """Yield the files that a call changed, each with what was done to it."""
    words = {"Update": "edited", "Add": "created", "Delete": "deleted"}
    texts = [patch, *(value for value in values.values() if isinstance(value, str))]
    for text in texts:
        for kind, path in _PATCHED.findall(text):
            yield path, words[kind]
    if command:
        for path in (*_WRITTEN.findall(command), *_REPLACED.findall(command)):
            if not path.startswith("/dev/"):
                yield path, "written by a command"
        return
    path = next((values[name] for name in _PATH_ARGUMENTS if isinstance(values.get(name), str)), "")
    if not path or not CHANGES.search(tool):
        return
    new = next((values[n] for n in _NEW_TEXT_ARGUMENTS if isinstance(values.get(n), str)), None)
    old = next((values[n] for n in _OLD_TEXT_ARGUMENTS if isinstance(values.get(n), str)), None)
    if old is None and new is not None:
        yield path, f"written, {len(new.splitlines()):,} lines"
    else:
        yield path, f"edited{_first_new_line(old or '', new or '')}"


def _first_new_line(old: str, new: str) -> str:
    """Return the first line of the new text that the old one does not have, if it is short."""
    before = {line.strip() for line in old.splitlines()}
    for line in new.splitlines():
        bare = line.strip()
        if bare and bare not in before and any(map(str.isalnum, bare)):
            return f" (`{bare}`)" if len(bare) <= _LINE_LENGTH else ""
    return ""


def _plan(values: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the steps in progress and to do, if the call sets a list of steps."""
    for name in _PLAN_ARGUMENTS:
        steps = values.get(name)
        if not isinstance(steps, list) or not steps:
            continue
        found: dict[str, list[str]] = {"doing": [], "waiting": []}
        for step in steps:
            if not isinstance(step, dict):
                return None
            words = next((step[each] for each in _STEP_FIELDS if step.get(each)), "")
            status = str(step.get("status", "")).lower()
            if not status.startswith(("complete", "done", "cancel")):
                key = "doing" if "progress" in status else "waiting"
                found[key].append(shorten(str(words), _LINE_LENGTH))
        return tuple(found["doing"]), tuple(found["waiting"])
    return None
