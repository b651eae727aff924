"""`enfold serve`: the web UI, the API and the proxy, behind one address."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from enfold.cli.screen import Db, say

app = App(
    name="serve",
    help_epilogue="""\
Examples:
  enfold serve
  enfold serve --sample
  ENFOLD_TOKEN=$(openssl rand -hex 32) enfold serve --host 0.0.0.0
  enfold serve --db postgresql://enfold@database/enfold --no-ui""",
)


@app.default
def serve(
    *,
    host: Annotated[
        str,
        Parameter(
            help="Where to listen. Other addresses than this machine's own need an access token, "
            "in ENFOLD_TOKEN."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, Parameter(help="0 takes one that is free.", validator=Number(gte=0, lte=65_535))
    ] = 8787,
    db: Db = None,
    no_ui: Annotated[
        bool, Parameter(help="Only the API and the proxy, as for several processes.")
    ] = False,
    sample: Annotated[
        bool, Parameter(help="Begin with a sample conversation, if nothing is stored yet.")
    ] = False,
) -> None:
    """Serve the web UI, the API and the proxy; Ctrl+C stops it."""
    # A door of its own, started from here and not used: that is what this command is for.
    server = import_module("enfold.server")
    options = server.Options(host, port, db, ui=not no_ui, sample=sample)
    server.run(options, partial(_tell, ui=not no_ui and server.has_ui()))
    say("stopped; everything that was under way is done")


def _tell(address: str, *, ui: bool) -> None:
    say(f"enfold serves on {address}")
    if ui:
        say(f"  UI        open {address} in a browser")
    say(f"  API       {address}/api, explained at {address}/docs")
    say(f"  OpenAI    set a client's base URL to {address}/v1")
    say(f"  Anthropic set a client's base URL to {address}")
    say(f"  health    {address}/readyz, figures at {address}/metrics")
    say("Ctrl+C stops it.")
