"""Summaries: requests to summarizers, prompts for models, and the built-in summarizer.

`request` has the interface of a summarizer, `prompts` the instructions for a model, `fence` the
form of a summary in a view, and `local` the summarizer that needs no model, key or network.
"""

from __future__ import annotations

from enfold.summaries.fence import HEADING, SHORT_TOKENS, fence, fence_tokens, summary_tokens
from enfold.summaries.request import Style, Summarizer, Summary, SummaryRequest, Usage

__all__ = [
    "HEADING",
    "SHORT_TOKENS",
    "Style",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "Usage",
    "fence",
    "fence_tokens",
    "summary_tokens",
]
