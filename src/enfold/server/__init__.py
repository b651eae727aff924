"""The server: web UI, JSON API, proxy, health and metrics behind one address.

`app` builds the application and `serve` runs it. `api` has the JSON API, `proxy` forwards requests
to providers.
"""

from enfold.server.app import App, create_app
from enfold.server.serve import ServeOptions, has_ui, run

__all__ = ["App", "ServeOptions", "create_app", "has_ui", "run"]
