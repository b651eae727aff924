"""The web UI: conversations, their context and their compressions, in a browser.

README.md beside this file says which page is which module and how live updates work.
"""

from enfold.ui.app import open_ui

__all__ = ["open_ui"]
