"""Notices: short texts from one process to all that share its database.

PostgreSQL carries them. An SQLite file is at home in one process, which has nobody to tell.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from enfold.store.database import Database
from enfold.store.store import Store

LONGEST = 7_900
"""Bytes of a text; PostgreSQL takes a little more."""


def can_send(store: Store) -> bool:
    """Whether there is a way to other processes."""
    return store.engine == "postgresql"


def send(db: Database, channel: str, text: str) -> None:
    """Tell everybody who listens to the channel, this process too if it does."""
    db.rows("notify", channel=channel, text=text)


async def listen(store: Store, channel: str) -> AsyncGenerator[str, None]:
    """What is sent to a channel, as it comes; an empty text first, once it is listened to."""
    with store.translating():
        async with aclosing(store.listen(channel)) as texts:
            async for text in texts:
                yield text
