"""The local summarizer: no model, no key, no network.

`conversation` and `earlier` read messages and the earlier summary into `units`; `worth`,
`corrections` and `sections` say what each is worth and where it belongs; `choice` and `index` take
what says most; `composition` makes it fit and `layout` writes it down.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from enfold.errors import SummaryError
from enfold.messages import text_of
from enfold.summaries.local.composition import Composition, Material, gather
from enfold.summaries.request import Summary, SummaryRequest
from enfold.tokens import get

CONCISE = 0.6
"""The share of the limit that the concise style aims at."""
OF_THE_NEW = 0.5
"""At most this share of what is new goes into a summary: one that is not shorter is of no use."""
_LEAST = 40
"""Tokens that are aimed at however little there is to summarize."""


@dataclass(frozen=True, slots=True)
class LocalSummarizer:
    """Chooses what to keep by what it says; `prompt` is for models and is not read."""

    name: str = "local"
    max_input: int | None = None

    async def summarize(self, request: SummaryRequest) -> Summary:
        """The summary, within its limit. The work is done in a thread: it takes milliseconds."""
        return await asyncio.to_thread(summarize, request)


def summarize(request: SummaryRequest) -> Summary:
    """What `LocalSummarizer` does, for callers without an event loop."""
    tokenizer = get(request.tokenizer)
    material = gather(request, tokenizer)
    if not material.units:
        raise SummaryError(
            f"there is nothing to summarize in {len(request.messages):,} messages: none has text"
        )
    limit = min(request.target, _useful_length(request, material))
    headings = True
    if request.style == "concise":
        limit, headings = max(1, int(limit * CONCISE)), False
    text = Composition(material, limit, tokenizer, headings=headings).compose()
    if not text:
        raise SummaryError(f"no summary fits into {limit:,} tokens; allow more")
    return Summary(text, "local", tokenizer.count(text))


def _useful_length(request: SummaryRequest, material: Material) -> int:
    """What the earlier summary takes, and half of what the messages do, reckoned by length."""
    earlier = sum(
        cost.text + cost.line
        for cost, unit in zip(material.costs, material.units, strict=True)
        if unit.is_earlier
    )
    tokens = sum(cost.text for cost in material.costs)
    characters = sum(len(unit.reading.text) for unit in material.units)
    source = sum(len(text_of(message.parts)) for message in request.messages)
    return max(_LEAST, earlier + int(OF_THE_NEW * source * tokens / characters))
