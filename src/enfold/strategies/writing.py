"""Writing summaries: one that keeps to its limit, of more than can be read at once if need be."""

from __future__ import annotations

from dataclasses import replace

from enfold.errors import SummaryError
from enfold.money import add
from enfold.summaries import Summarizer, Summary, SummaryRequest
from enfold.summaries.sequence import pieces

ATTEMPTS = 3
"""How often a summary that is too long is asked for."""


async def fold(summarizer: Summarizer, request: SummaryRequest) -> Summary:
    """The summary of the request, or `SummaryError`. Its cost and notes are of all attempts.

    What is more than the summarizer can read is folded in sequence: the summary of one piece is
    the previous summary of the next.
    """
    written: list[Summary] = []
    summary: Summary | None = None
    for piece in pieces(request, summarizer.max_input):
        previous = request.previous if summary is None else summary.text
        asked = replace(request, messages=piece, previous=previous)
        summary = await _summarize(summarizer, asked, written)
    if summary is None:
        raise SummaryError("there is nothing to summarize")
    notes = dict.fromkeys(note for each in written for note in each.notes)
    return replace(summary, cost=add([each.cost for each in written]), notes=tuple(notes))


async def _summarize(
    summarizer: Summarizer, request: SummaryRequest, written: list[Summary]
) -> Summary:
    for tightness in range(ATTEMPTS):
        summary = await summarizer.summarize(replace(request, tightness=tightness))
        written.append(summary)
        if not summary.text.strip():
            raise SummaryError(f"the summarizer {summary.author!r} gave an empty summary")
        if summary.tokens <= request.max_tokens:
            return summary
    raise SummaryError(
        f"the summarizer {summary.author!r} gave {summary.tokens:,} tokens where "
        f"{request.max_tokens:,} were asked for, {ATTEMPTS} times"
    )
