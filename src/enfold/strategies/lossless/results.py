"""Obsolete state: results that a later result of the same kind supersedes.

A file that was read again, a command that was run again, a to-do list that was written again: the
later result is what holds now. What is taken out of view is set aside, to be restored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from enfold.encodings import ENCODINGS, bodies, encode, is_numbered, runs
from enfold.messages import ToolCall
from enfold.strategies.lossless import texts
from enfold.strategies.lossless.config import (
    OPERATIONS,
    Encodings,
    Obsolete,
    ToolKind,
    arguments_of,
    identity_of,
    kind_of,
    path_of,
)
from enfold.strategies.lossless.texts import EditRight, StepContext, TextDraft

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
        """Return True if it shows all lines of the earlier read, changed or not."""
        last, earlier_last = self.first + len(self.lines), earlier.first + len(earlier.lines)
        return self.first <= earlier.first and earlier_last <= last

    def shows(self, earlier: _Read) -> bool:
        """Return True if the lines of the earlier read are unchanged."""
        skipped = earlier.first - self.first
        return list(self.lines[skipped : skipped + len(earlier.lines)]) == list(earlier.lines)


def remove_obsolete(drafts: Sequence[TextDraft], kinds: Obsolete, terms: StepContext) -> None:
    """Set aside what is superseded, and say by which message."""
    for index, later in _superseded(drafts, kinds):
        draft = drafts[index]
        number = terms.numbers[drafts[later].was.message]
        marker = texts.superseded(number, texts.describe(draft.was.call))
        if terms.pays(draft.text, marker):
            draft.replace_by(marker, source=None)
            drafts[later].is_named = True


def _superseded(drafts: Sequence[TextDraft], kinds: Obsolete) -> Iterator[tuple[int, int]]:
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
        if later is not None and later != index and draft.right is EditRight.ANYTHING:
            yield index, later


def _later_read(read: _Read, later: list[_Read], kinds: Obsolete) -> int | None:
    """The latest look at the file that covers this one; it joins the others if there is none."""
    for each in later[:_MOST_READS]:
        if each.covers(read) and (kinds.covered_reads if each.shows(read) else kinds.stale_reads):
            return each.draft
    later.append(read)
    return None


def _read(text: str, index: int, call: ToolCall, kind: ToolKind) -> _Read | None:
    """The lines of a file that a result shows.

    Numbered lines, else, for a read, all lines from the first that the arguments name.
    The result of an edit counts only if its lines have numbers.
    """
    lines = text.split("\n")
    if is_numbered(text):
        longest = max(runs(lines), key=lambda run: run.stop - run.start, default=None)
        if longest is not None:
            return _Read(index, longest.first, bodies(lines, longest))
    if kind == "edit":
        return None
    arguments = arguments_of(call)
    offsets = (arguments.get(key) for key in _FIRST_LINE)
    first = next((n for n in offsets if isinstance(n, int) and not isinstance(n, bool)), 1)
    return _Read(index, first, lines)


def _operation(call: ToolCall, kind: ToolKind) -> tuple[str, str]:
    """Return a key that is equal for repeated calls; all to-do lists are equal."""
    return (call.name, "") if kind == "todo" else identity_of(call)


_MOST_OUTCOMES = 8
"""How many different outcomes of one operation are compared with."""


def replace_repeats(drafts: Sequence[TextDraft], terms: StepContext) -> None:
    """Replace results that are in view elsewhere, word for word."""
    kept: dict[str, int] = {}
    for index in _in_order(drafts, terms):
        draft = drafts[index]
        source = kept.setdefault(draft.text, index)
        if source != index and _may_be_replaced(draft):
            marker = _reference(drafts, source, index, terms)
            _replace(drafts, index, source, (0, len(draft.text)), marker, terms)


def _reference(drafts: Sequence[TextDraft], source: int, index: int, terms: StepContext) -> str:
    call = drafts[source].was.call
    number = terms.numbers[drafts[source].was.message]
    if call is not None and kind_of(call) == "read":
        return texts.file_reference(number, texts.describe(call), above=source < index)
    return texts.reference(number, texts.describe(call))


def consolidate(drafts: Sequence[TextDraft], terms: StepContext) -> None:
    """Replace outcomes of an operation that another run of the same operation contains."""
    groups: dict[tuple[str, str], list[int]] = {}
    for index in _in_order(drafts, terms):
        call = drafts[index].was.call
        if call is not None and kind_of(call) in OPERATIONS:
            groups.setdefault(identity_of(call), []).append(index)
    for group in groups.values():
        if len(group) > 1:
            _consolidate(drafts, group, terms)


def _consolidate(drafts: Sequence[TextDraft], group: Sequence[int], terms: StepContext) -> None:
    """Consolidate one group: the result that contains most is kept, then the first."""
    kept: list[int] = []
    contained: dict[int, list[tuple[int, int]]] = {}
    for index in sorted(group, key=lambda i: -len(drafts[i].text)):
        found = _container(drafts, index, kept[:_MOST_OUTCOMES])
        if found is None:
            kept.append(index)
        else:
            source, at = found
            contained.setdefault(source, []).append((index, at))
    for source, members in contained.items():
        number = terms.numbers[drafts[source].was.message]
        description = texts.describe(drafts[source].was.call)
        replaced = [(index, at) for index, at in members if _may_be_replaced(drafts[index])]
        marker = texts.consolidated(len(replaced) + 1, number, description)
        for index, at in replaced:
            place = (at, at + len(drafts[index].text))
            _replace(drafts, index, source, place, marker, terms)


def _container(
    drafts: Sequence[TextDraft], index: int, kept: Sequence[int]
) -> tuple[int, int] | None:
    """An outcome that contains this one as whole lines, and where."""
    text = drafts[index].text
    for source in kept:
        at = f"\n{drafts[source].text}\n".find(f"\n{text}\n")
        if at >= 0:
            return source, at
    return None


def _replace(
    drafts: Sequence[TextDraft],
    index: int,
    source: int,
    at: tuple[int, int],
    marker: str,
    terms: StepContext,
) -> None:
    if terms.pays(drafts[index].text, marker):
        drafts[index].replace_by(marker, source, at)
        drafts[source].is_whole = True


def _in_order(drafts: Sequence[TextDraft], terms: StepContext) -> list[int]:
    """Drafts of results, those first that are kept where several say the same."""
    results = [index for index, draft in enumerate(drafts) if _may_be_pointed_to(draft)]
    return results[::-1] if terms.keep_last else results


def _may_be_pointed_to(draft: TextDraft) -> bool:
    """Return True for a result that is shown in full, without any marker."""
    shown = draft.was
    return (
        shown.is_result
        and not shown.is_error
        and bool(draft.text)
        and not draft.holes
        and "⟨ " not in draft.text
    )


def _may_be_replaced(draft: TextDraft) -> bool:
    return draft.right is not EditRight.NOTHING and not draft.is_whole and not draft.is_named


def reencode(drafts: Sequence[TextDraft], wanted: Encodings, terms: StepContext) -> None:
    """Write every draft that may be changed in the encodings that are wanted, if it then pays."""
    names = [name for name in ENCODINGS if name in wanted.names]
    changed: list[TextDraft] = []
    texts: list[str] = []
    applied: list[list[tuple[str, Any]]] = []
    for draft in drafts:
        if draft.right is EditRight.ANYTHING and not draft.holes:
            text, how = _encoded(draft.text, names)
            if how:
                changed.append(draft)
                texts.append(text)
                applied.append(how)
    before = terms.tokenizer.count_many([draft.text for draft in changed])
    after = terms.tokenizer.count_many(texts)
    for index, draft in enumerate(changed):
        if before[index] - after[index] >= terms.least:
            draft.text, draft.encodings = texts[index], applied[index]


def _encoded(text: str, names: Sequence[str]) -> tuple[str, list[tuple[str, Any]]]:
    """The text in all encodings that help, one after the other, and what undoes each."""
    applied: list[tuple[str, Any]] = []
    for name in names:
        found = encode(name, text)
        if found is not None:
            text, how = found
            applied.append((name, how))
    return text, applied
