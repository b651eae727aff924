"""The queue: work that nobody waits for, done from the store's outbox.

The outbox says what is to be done and when. Who looks is a runner: in this process on SQLite, and
on PostgreSQL whichever process has time.
"""

from enfold.queue.queue import Queue, State
from enfold.queue.work import Duty, Work

__all__ = ["Duty", "Queue", "State", "Work"]
