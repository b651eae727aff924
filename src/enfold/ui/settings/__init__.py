"""Settings in the browser: what can be set, for everybody or for one session, and where it is from.

`page` is the page with its sections; `scope` says whose settings are changed; every section is a
module of its own. What is allowed is the engine's word: no rule is written down here again.
"""

from enfold.ui.settings.page import settings

__all__ = ["settings"]
