"""Summaries: what is asked of a summarizer, in which words, and the built-in one.

`request` is the port, `prompts` what a model is told, `fencing` how a summary stands in a view,
`local` the summarizer that needs no model, no key and no network.
"""

from __future__ import annotations

from enfold.summaries.fence import HEADING, fence, fence_tokens, summary_tokens
from enfold.summaries.request import Style, Summarizer, Summary, SummaryRequest, Usage

__all__ = [
    "HEADING",
    "Style",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "Usage",
    "fence",
    "fence_tokens",
    "summary_tokens",
]
