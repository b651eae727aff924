"""The server: the JSON API, the proxy's place, health and figures, behind one address.

`app` puts it together, `serving` runs it, `api` has a module for each noun.
"""

from enfold.server.app import App, create_app
from enfold.server.serve import Options, has_ui, run

__all__ = ["App", "Options", "create_app", "has_ui", "run"]
