"""The built-in summarizer, which needs no model, no key and no network.

`lexicon` reads tokens, `units` divides the conversation into pieces and shortens tool calls,
`state` reads the state of an agent's work from its calls. `selection` computes the worth of the
pieces and selects them; `composition` makes the text fit and writes it as Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass

from enfold.errors import SummaryError
from enfold.messages import text_of
from enfold.summaries.local.composition import Composition, Material, gather_material
from enfold.summaries.request import Summary, SummaryRequest
from enfold.text.secrets import hide
from enfold.tokens import compute_async, get

LOCAL = "local"
"""The name of the built-in summarizer."""
_CONCISE = 0.6
"""The share of the limit that the concise style uses."""
_MAX_SHARE = 0.5
"""The largest share of the messages' length; a summary that is not shorter is useless."""
_FEW = 12
"""Words that are quoted of messages without content."""
_MIN_TOKENS = 40
"""The smallest target, however short the messages are."""


@dataclass(frozen=True, slots=True)
class LocalSummarizer:
    """Selects the sentences with most content. It ignores `prompt`, which is for models."""

    name: str = LOCAL
    max_input: int | None = None

    async def summarize(self, request: SummaryRequest) -> Summary:
        """Return the summary, within its limit. A thread does the work, in some milliseconds."""
        return await compute_async(summarize, request)


def summarize(request: SummaryRequest) -> Summary:
    """Return the summary of a request; blocking."""
    tokenizer = get(request.tokenizer)
    material = gather_material(request, tokenizer)
    if not material.units:
        text = _few_words(request)
        if tokenizer.count(text) > request.target:
            raise SummaryError(f"no summary fits into {request.target:,} tokens; allow more")
        return Summary(text, LOCAL, tokenizer.count(text), is_checked=True)
    limit = min(request.target, _useful_length(request, material))
    headings = True
    if request.style == "concise":
        limit, headings = max(1, int(limit * _CONCISE)), False
    text = hide(Composition(material, limit, tokenizer, headings=headings).compose())
    if not text:
        raise SummaryError(f"no summary fits into {limit:,} tokens; allow more")
    return Summary(text, LOCAL, tokenizer.count(text), is_checked=True)


def _few_words(request: SummaryRequest) -> str:
    """Return the summary of messages in which no sentence has content, such as greetings."""
    words = " ".join(text_of(message.parts) for message in request.messages).split()
    if not words:
        raise SummaryError(
            f"there is nothing to summarize in {len(request.messages):,} messages: none has text"
        )
    return f"Said: {' '.join(words[:_FEW])}"


def _useful_length(request: SummaryRequest, material: Material) -> int:
    """Return the tokens of the previous summary and of the state, and half of the text's."""
    earlier = sum(
        cost.text + cost.line
        for cost, unit in zip(material.costs, material.units, strict=True)
        if unit.origin.section  # of the previous summary, or about the state of the work
    )
    tokens = sum(cost.text for cost in material.costs)
    characters = sum(len(unit.text) for unit in material.units)
    source = sum(len(text_of(message.parts)) for message in request.messages)
    return max(_MIN_TOKENS, earlier + int(_MAX_SHARE * source * tokens / characters))
