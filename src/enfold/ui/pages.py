"""The pages: a table of path -> function. A page is one more row.

A page function is called with the window and what the path names, and builds the page in its
`frame`. An `EnfoldError` that it raises is shown in the page's place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from enfold.ui.chat import chat

Page: TypeAlias = Callable[..., Awaitable[None]]

PAGES: Mapping[str, Page] = {
    "/": chat,
    "/s/{session}": chat,
}
