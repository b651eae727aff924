"""Recording: a condensation as it is stored, a snapshot with a manifest and its edits.

A snapshot that folds covers the messages up to the last that it folds. One that edits covers all
that is shown, so its cutoff is the tip. Cutoffs never move back on a branch: what a compression
leaves of the messages that an earlier one covers is in its manifest too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from enfold import dialects
from enfold.condensation import Condensation, Edited, Folded, Task
from enfold.engine.viewing import POINTS_TO, SETTLED
from enfold.estimates import estimate
from enfold.jsontext import dumps
from enfold.store import records
from enfold.summaries import summary_tokens
from enfold.view import Shown, View

WARNINGS = "warnings"
"""The field of a snapshot's content with what there is to say of how it came about."""

NOTHING_STILL: Mapping[int, Shown] = {}


@dataclass(frozen=True, slots=True)
class Recording:
    """What is written of a compression."""

    draft: records.SnapshotDraft
    edits: tuple[records.EditDraft, ...]
    flush: tuple[str, ...]
    """The ids of the messages that were folded, for long-term memory."""


def record(
    view: View,
    task: Task,
    answer: Condensation,
    *,
    before: int,
    automatic: bool,
    instead_of: records.Snapshot | None = None,
    still: Mapping[int, Shown] = NOTHING_STILL,
) -> Recording:
    """The snapshot of an answer to a view; `instead_of` is one that it replaces.

    `before` is what the view took, and `still` are messages that it goes on to show as they were
    before the compression began.
    """
    folded = answer.summary
    edits = {edit.index: _edit(view, edit, task.tokenizer) for edit in answer.edits}
    covered, cutoff = _reach(view, answer, instead_of)
    shows_earlier = folded is None and view.summary is not None
    draft = records.SnapshotDraft(
        content={
            **_content(view, answer, automatic=automatic),
            "originalTokenCount": before,
            "newTokenCount": tokens_after(task, answer, still),
        },
        cutoff=cutoff,
        parent=view.tip,
        manifest=tuple(_joined(_entries(view, answer, covered, edits, still))),
        token_count=folded.tokens
        if folded is not None
        else (view.summary_tokens if shows_earlier else None),
        tokenizer=view.tokenizer,
        previous=instead_of.id if instead_of is not None else view.snapshot,
        strategy=answer.strategy,
        author=folded.author if folded is not None else answer.strategy,
    )
    flush = tuple(view.shown[index].id for index in folded.indexes) if folded is not None else ()
    return Recording(draft, tuple(edits.values()), flush)


def worded_by_hand(snapshot: records.Snapshot, text: str, tokenizer: str) -> records.SnapshotDraft:
    """The same snapshot with somebody's own words for a summary."""
    return records.SnapshotDraft(
        content={**snapshot.content, "summaryText": text, "receipt": None, WARNINGS: []},
        cutoff=snapshot.cutoff,
        parent=snapshot.parent,
        manifest=snapshot.manifest,
        token_count=summary_tokens(text, tokenizer),
        tokenizer=tokenizer,
        previous=snapshot.id,
        strategy=snapshot.strategy,
        author="user",
    )


def tokens_after(task: Task, answer: Condensation, still: Mapping[int, Shown]) -> int:
    """What the view takes afterwards."""
    less = sum(task.counts[index] - shown.tokens for index, shown in still.items())
    return answer.tokens(task) - less


def _edit(view: View, edit: Edited, tokenizer: str) -> records.EditDraft:
    body = dumps(dialects.get(edit.message.dialect).render_message(edit.message))
    shown = view.shown[edit.index]
    sources = {source.message for each in edit.shortenings for source in each.sources}
    points_to = {view.shown[index].id for index in sources} | set(shown.points_to)
    return records.EditDraft(
        message=shown.id,
        body=body,
        tokens=edit.tokens,
        tokenizer=tokenizer,
        estimate=estimate(edit.message),
        ledger={POINTS_TO: sorted(points_to)} if points_to else None,
    )


def _reach(
    view: View, answer: Condensation, instead_of: records.Snapshot | None
) -> tuple[int, str | None]:
    """How many of the messages shown the snapshot covers, and its cutoff."""
    if answer.edits:
        return len(view.shown), view.tip
    covered, cutoff = view.covered, view.cutoff
    if instead_of is not None:
        places = {shown.id: index for index, shown in enumerate(view.shown)}
        at = places.get(instead_of.cutoff or "", -1)
        covered, cutoff = (at + 1, instead_of.cutoff) if at >= covered else (covered, cutoff)
    last = max(answer.summary.indexes) if answer.summary is not None else -1
    return (last + 1, view.shown[last].id) if last >= covered else (covered, cutoff)


def _content(view: View, answer: Condensation, *, automatic: bool) -> dict[str, Any]:
    folded = answer.summary
    touched = folded.indexes if folded is not None else [edit.index for edit in answer.edits]
    if folded is None:
        settled = view.settled if view.summary is not None else 0
    else:
        settled = sum(
            not isinstance(entry, Folded) and entry.index < max(folded.indexes)
            for entry in answer.entries
        )
    return {
        "summaryText": folded.text if folded is not None else view.summary,
        "messageRange": {
            "firstMessageId": view.shown[min(touched)].id,
            "lastMessageId": view.shown[max(touched)].id,
        },
        "compressionType": "auto" if automatic else "manual",
        "messagesIncluded": len(folded.indexes) if folded is not None else 0,
        "messagesEdited": len(answer.edits),
        "receipt": answer.receipt.counts_as_json() if answer.receipt is not None else None,
        WARNINGS: list(answer.warnings),
        SETTLED: settled,
    }


def _entries(
    view: View,
    answer: Condensation,
    covered: int,
    edits: Mapping[int, records.EditDraft],
    still: Mapping[int, Shown],
) -> Iterator[tuple[records.ManifestEntry, int]]:
    """What is shown of the messages covered, each with its place in the history."""
    earlier_at = view.summary_at if answer.summary is None and view.summary is not None else None
    for entry in answer.entries:
        if isinstance(entry, Folded):
            yield records.Summarized(), 0
            continue
        if entry.index >= covered:
            break
        if entry.index == earlier_at:
            yield records.Summarized(), 0
        shown = still.get(entry.index, view.shown[entry.index])
        if entry.index in edits:
            yield records.Edited(edits[entry.index].id), shown.depth
        elif shown.edit is not None:
            yield records.Edited(shown.edit), shown.depth
        else:
            yield records.Kept(shown.id, shown.id), shown.depth
    if earlier_at is not None and earlier_at >= covered:
        yield records.Summarized(), 0


def _joined(
    entries: Iterator[tuple[records.ManifestEntry, int]],
) -> Iterator[records.ManifestEntry]:
    """The entries, with messages that follow each other in the history as one stretch."""
    stretch: records.Kept | None = None
    end = 0
    for entry, depth in entries:
        if stretch is not None and isinstance(entry, records.Kept) and depth == end + 1:
            stretch = records.Kept(stretch.first, entry.last)
        else:
            if stretch is not None:
                yield stretch
            stretch = entry if isinstance(entry, records.Kept) else None
            if stretch is None:
                yield entry
        end = depth
    if stretch is not None:
        yield stretch
