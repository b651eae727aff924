"""The local summarizer: no model, no key, no network.

`conversation` and `earlier` read messages and the earlier summary into `units`; `worth`,
`corrections` and `sections` say what each is worth and where it belongs; `choice` and `index` take
what says most; `composition` makes it fit and `layout` writes it down.
"""

from __future__ import annotations

from enfold.summaries.local.summarizer import LocalSummarizer, summarize

__all__ = ["LocalSummarizer", "summarize"]
