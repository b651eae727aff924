"""The store: sessions as trees of messages, their snapshots, and other persistent tables.

Open it with `open_store`; see `store.py` for how its functions are called.
"""

from __future__ import annotations

from enfold.store.database import Database
from enfold.store.store import Store, open_store

__all__ = ["Database", "Store", "open_store"]
