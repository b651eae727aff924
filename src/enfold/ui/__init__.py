"""The web UI: sessions, their context and what enfold does with it, in a browser.

`app` puts it behind a server's address, `pages` is the table of its pages, `frame` what stands
around each, `theme` and `figures` how things look. A page gets its `Window`.
"""

from enfold.ui.app import open_ui

__all__ = ["open_ui"]
