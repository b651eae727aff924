"""Folding on a page: compressions as they run, their outcomes, summaries, and what they changed.

`Compressing` is what a page has to follow a session's compressions and to ask for one;
`summary_card` shows one in a chat. The page of one compression is in `changes`.
"""

from enfold.ui.compression.controls import CompressionPanel
from enfold.ui.compression.summary_card import summary_card

__all__ = ["CompressionPanel", "summary_card"]
