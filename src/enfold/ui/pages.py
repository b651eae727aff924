"""The pages: a table of path -> function. A page is one more row.

A page function is called with the window and what the path names, and builds the page in its
`frame`. An `EnfoldError` that it raises is shown in the page's place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from enfold.ui.chat import chat
from enfold.ui.dashboard import dashboard
from enfold.ui.folding.changes import changes
from enfold.ui.history import history
from enfold.ui.settings import settings

Page: TypeAlias = Callable[..., Awaitable[None]]

PAGES: Mapping[str, Page] = {
    "/": chat,
    "/s/{session}": chat,
    "/s/{session}/history": history,
    "/s/{session}/changes/{snapshot}": changes,
    "/dashboard": dashboard,
    "/settings": settings,
    "/settings/{section}": settings,
}
