"""Compressions on a page: running ones, their outcomes, summaries and changes.

`CompressionPanel` follows the compressions of a session and starts them, `summary_card` shows one
in the chat, `changes` is the page of one compression.
"""

from enfold.ui.compression.controls import CompressionPanel
from enfold.ui.compression.summary_card import summary_card

__all__ = ["CompressionPanel", "summary_card"]
