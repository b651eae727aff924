"""Obsolete state: results that a later result of the same kind supersedes.

A file that was read again, a command that was run again, a to-do list that was written again: the
later result is what holds now. What is taken out of view is set aside, to be restored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from enfold.encodings.numbering import bodies, is_numbered, runs
from enfold.messages import ToolCall
from enfold.strategies.lossless import markers
from enfold.strategies.lossless.config import Obsolete
from enfold.strategies.lossless.drafts import Draft, Terms
from enfold.strategies.lossless.operations import (
    Kind,
    arguments_of,
    identity_of,
    kind_of,
    path_of,
)
from enfold.strategies.lossless.texts import Right

_FIRST_LINE = ("offset", "start_line", "line_start", "start")
_MOST_READS = 16
"""How many later reads of a file are compared with."""


@dataclass(frozen=True, slots=True)
class _Read:
    """Lines of a file, as a read showed them."""

    draft: int
    first: int
    lines: Sequence[str]

    def covers(self, earlier: _Read) -> bool:
        """Whether it shows all the lines that the earlier one showed, as they are now."""
        last, earlier_last = self.first + len(self.lines), earlier.first + len(earlier.lines)
        return self.first <= earlier.first and earlier_last <= last

    def shows(self, earlier: _Read) -> bool:
        """Whether those lines are still the same."""
        skipped = earlier.first - self.first
        return list(self.lines[skipped : skipped + len(earlier.lines)]) == list(earlier.lines)


def take_out_obsolete(drafts: Sequence[Draft], kinds: Obsolete, terms: Terms) -> None:
    """Set aside what is superseded, and say by which message."""
    for index, later in _superseded(drafts, kinds):
        draft = drafts[index]
        number = terms.numbers[drafts[later].was.message]
        marker = markers.superseded(number, markers.describe(draft.was.call))
        if terms.pays(draft.text, marker):
            draft.replace_by(marker, source=None)
            drafts[later].is_named = True


def _superseded(drafts: Sequence[Draft], kinds: Obsolete) -> Iterator[tuple[int, int]]:
    """Each result that a later one supersedes, with the latest that does; newest first."""
    reads: dict[str, list[_Read]] = {}
    latest: dict[tuple[str, str], int] = {}
    for index in range(len(drafts) - 1, -1, -1):
        draft = drafts[index]
        call = draft.was.call
        if call is None or not draft.was.is_result or draft.was.is_error or "⟨ " in draft.text:
            continue
        kind = kind_of(call)
        later: int | None = None
        if kind in {"read", "edit"}:
            read = _read(draft.text, index, call, kind)
            path = path_of(call)
            if read is not None and path is not None:
                later = _later_read(read, reads.setdefault(path, []), kinds)
        elif kinds.todo_lists if kind == "todo" else kinds.commands:
            later = latest.setdefault(_operation(call, kind), index)
        if later is not None and later != index and draft.right is Right.ANYTHING:
            yield index, later


def _later_read(read: _Read, later: list[_Read], kinds: Obsolete) -> int | None:
    """The latest look at the file that covers this one; it joins the others if there is none."""
    for each in later[:_MOST_READS]:
        if each.covers(read) and (kinds.covered_reads if each.shows(read) else kinds.stale_reads):
            return each.draft
    later.append(read)
    return None


def _read(text: str, index: int, call: ToolCall, kind: Kind) -> _Read | None:
    """The lines of a file that a result shows.

    Those with numbers, else, for a read, all from where it was told to begin. What an edit returns
    is a look at the file only if lines have numbers.
    """
    lines = text.split("\n")
    if is_numbered(text):
        longest = max(runs(lines), key=lambda run: run.stop - run.start, default=None)
        if longest is not None:
            return _Read(index, longest.first, bodies(lines, longest))
    if kind == "edit":
        return None
    arguments = arguments_of(call)
    told = (arguments.get(key) for key in _FIRST_LINE)
    first = next((n for n in told if isinstance(n, int) and not isinstance(n, bool)), 1)
    return _Read(index, first, lines)


def _operation(call: ToolCall, kind: Kind) -> tuple[str, str]:
    """What makes two calls the same: a to-do list is one whatever it says."""
    return (call.name, "") if kind == "todo" else identity_of(call)
