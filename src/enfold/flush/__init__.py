"""Flush: what was summarized goes to long-term memory, in the background."""

from enfold.flush.memory import Memory
from enfold.flush.worker import Delivery, Flush, Sink

__all__ = ["Delivery", "Flush", "Memory", "Sink"]
