"""The engine: sessions of any length, kept inside their model's window.

`Engine` opens sessions, `Session` is what every door works with, `compression` is one compression
from plan to record, `viewing` stands between messages and stored rows.
"""

from enfold.engine.engine import Engine
from enfold.engine.results import Prepared, Preview, Status
from enfold.engine.session import Session
from enfold.pipeline import Outcome

__all__ = ["Engine", "Outcome", "Prepared", "Preview", "Session", "Status"]
