"""Flush: what was summarized goes to long-term memory, in the background."""

from enfold.flush.delivery import Delivery, Flush, Sink
from enfold.flush.memory import Memory

__all__ = ["Delivery", "Flush", "Memory", "Sink"]
