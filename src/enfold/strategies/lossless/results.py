"""Obsolete state: results that a later result of the same kind supersedes.

A file that was read again, a command that was run again, a to-do list that was written again: the
later result is what holds now. What is taken out of view is set aside, to be restored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from enfold.condensation import Plan
from enfold.encodings import ENCODINGS, bodies, encode, is_numbered, runs
from enfold.jsontext import dump_text
from enfold.messages import Message, Reasoning, ToolCall
from enfold.strategies.lossless import markers
from enfold.strategies.lossless.config import (
    OPERATIONS,
    Encodings,
    Obsolete,
    ToolKind,
    arguments_of,
    content_written,
    identity_of,
    kind_of,
    path_of,
    shows_state,
)
from enfold.strategies.lossless.drafts import StepContext, TextDraft
from enfold.strategies.lossless.texts import EditRight

_FIRST_LINE = ("offset", "start_line", "line_start", "start")
_LEAST_OF_ENCODING = 4
"""Tokens that another encoding must save."""
_MOST_READS = 16
"""Number of later reads of a file that are compared."""


@dataclass(frozen=True, slots=True)
class _Read:
    """Lines of a file, as a read showed them."""

    draft: int
    first: int
    lines: Sequence[str]
    is_whole_file: bool = False

    def covers(self, earlier: _Read) -> bool:
        """Return True if it shows all lines of the earlier read, changed or not."""
        if self.is_whole_file:
            return True
        last, earlier_last = self.first + len(self.lines), earlier.first + len(earlier.lines)
        return self.first <= earlier.first and earlier_last <= last

    def shows(self, earlier: _Read) -> bool:
        """Return True if the lines of the earlier read are unchanged."""
        skipped = earlier.first - self.first
        return list(self.lines[skipped : skipped + len(earlier.lines)]) == list(earlier.lines)


def remove_obsolete(drafts: Sequence[TextDraft], kinds: Obsolete, terms: StepContext) -> None:
    """Take superseded results out of view, with markers that name what supersedes them."""
    for index, later in _superseded(drafts, kinds):
        draft = drafts[index]
        marker = markers.superseded(terms.names.name(later, index))
        if terms.pays(draft.text, marker):
            draft.replace_by(marker, source=None)
            draft.superseded_by = later
            drafts[later].is_named = True


def superseded_lists(plan: Plan) -> dict[int, Message]:
    """Return the messages whose calls write a to-do list that a later call writes again.

    The list is in the call's parameters, so a marker takes its place there. A reply with reasoning
    stays as it is, because an edit would drop the reasoning.
    """
    messages, editable = plan.messages, set(plan.editable)
    latest: set[str] = set()
    edited: dict[int, Message] = {}
    for index in range(len(messages) - 1, -1, -1):
        parts = list(messages[index].parts)
        for place in range(len(parts) - 1, -1, -1):
            call = parts[place]
            if not isinstance(call, ToolCall) or kind_of(call) != "todo":
                continue
            if call.name in latest:
                parts[place] = _without_list(call)
            elif any(isinstance(value, list) for value in arguments_of(call).values()):
                latest.add(call.name)
        is_signed = any(isinstance(part, Reasoning) for part in parts)
        if index in editable and not is_signed and tuple(parts) != messages[index].parts:
            edited[index] = replace(messages[index], parts=tuple(parts))
    return edited


def _without_list(call: ToolCall) -> ToolCall:
    """Return the call with a marker in place of every list in its arguments."""
    given = arguments_of(call)
    changed = {
        key: [markers.SUPERSEDED_LIST] if isinstance(value, list) and value else value
        for key, value in given.items()
    }
    if changed == given:
        return call
    is_text = isinstance(call.arguments, str)
    return replace(call, arguments=dump_text(changed) if is_text else changed)


def _superseded(drafts: Sequence[TextDraft], kinds: Obsolete) -> Iterator[tuple[int, int]]:
    """Each result that a later one supersedes, with the latest that does; newest first."""
    reads: dict[str, list[_Read]] = {}
    latest: dict[tuple[str, str], int] = {}
    for index in range(len(drafts) - 1, -1, -1):
        draft = drafts[index]
        call = draft.was.call
        if call is None or draft.was.is_error or "⟨ " in draft.text:
            continue
        kind = kind_of(call)
        if not draft.was.is_result:
            path = path_of(call)
            if path is not None and draft.text == content_written(call):
                reads.setdefault(path, []).append(_Read(index, 1, (), is_whole_file=True))
            continue
        later: int | None = None
        if kind in {"read", "edit"}:
            read = _read(draft.text, index, call, kind)
            path = path_of(call)
            if read is not None and path is not None:
                later = _later_read(read, reads.setdefault(path, []), kinds)
        elif kind == "todo":
            later = latest.setdefault((call.name, ""), index) if kinds.todo_lists else None
        elif kinds.commands and shows_state(call):
            later = latest.setdefault(identity_of(call), index)
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


def replace_repeats(drafts: Sequence[TextDraft], terms: StepContext) -> None:
    """Replace results that are in view elsewhere, word for word."""
    kept: dict[str, int] = {}
    for index in _in_order(drafts, terms):
        draft = drafts[index]
        source = kept.setdefault(draft.text, index)
        if source != index and _may_be_replaced(draft):
            call, name = drafts[source].was.call, terms.names.name(source, index)
            is_read = call is not None and kind_of(call) == "read"
            marker = markers.file_reference(name) if is_read else markers.reference(name)
            _replace(drafts, index, source, marker, terms)


def consolidate(drafts: Sequence[TextDraft], terms: StepContext) -> None:
    """Replace results of an operation that another run of it repeats word for word.

    A result that differs is another fact, and stays: a test that passed before an edit and failed
    after it.
    """
    groups: dict[tuple[str, str, str], list[int]] = {}
    for index in _in_order(drafts, terms):
        call = drafts[index].was.call
        if call is not None and kind_of(call) in OPERATIONS:
            groups.setdefault((*identity_of(call), drafts[index].text), []).append(index)
    for source, *others in groups.values():
        repeats = [index for index in others if _may_be_replaced(drafts[index])]
        for index in repeats:
            marker = markers.consolidated(len(repeats) + 1, terms.names.name(source, index))
            _replace(drafts, index, source, marker, terms)


def _replace(
    drafts: Sequence[TextDraft], index: int, source: int, marker: str, terms: StepContext
) -> None:
    draft = drafts[index]
    if terms.pays(draft.text, marker):
        draft.replace_by(marker, source, (0, len(draft.text)))
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


def may_be_reencoded(draft: TextDraft) -> bool:
    """Return True if the text may be written in another encoding."""
    return draft.right is EditRight.ANYTHING and not draft.holes


def reencode(drafts: Iterable[TextDraft], wanted: Encodings, terms: StepContext) -> int:
    """Write the drafts in the encodings that are wanted, where it pays; return the saved tokens."""
    names = [name for name in ENCODINGS if name in wanted.names]
    changed: list[TextDraft] = []
    texts: list[str] = []
    applied: list[list[tuple[str, Any]]] = []
    for draft in drafts:
        text, how = _encoded(draft.text, names)
        # Escaped JSON may hold the words of a marker, which must not become one.
        if how and not any(markers.find_markers(text)):
            changed.append(draft)
            texts.append(text)
            applied.append(how)
    # An encoding leaves no marker that makes the text harder to read, so that less is enough.
    least = min(terms.least, _LEAST_OF_ENCODING)
    before = terms.tokenizer.count_many([draft.text for draft in changed])
    after = terms.tokenizer.count_many(texts)
    saved = [old - new for old, new in zip(before, after, strict=True)]
    for index, draft in enumerate(changed):
        if saved[index] >= least:
            draft.text, draft.encodings = texts[index], applied[index]
    return sum(tokens for tokens in saved if tokens >= least)


def _encoded(text: str, names: Sequence[str]) -> tuple[str, list[tuple[str, Any]]]:
    """The text in all encodings that help, one after the other, and what undoes each."""
    applied: list[tuple[str, Any]] = []
    for name in names:
        found = encode(name, text)
        if found is not None:
            text, how = found
            applied.append((name, how))
    return text, applied
