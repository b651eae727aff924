"""`enfold serve`: the web UI, the API and the proxy, behind one address."""

from __future__ import annotations

import gc
import sys
from functools import partial
from importlib import import_module
from typing import Annotated, Literal

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
            help="The address to listen on. Addresses other than loopback need an access token in "
            "ENFOLD_TOKEN."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, Parameter(help="The port; 0 takes a free one.", validator=Number(gte=0, lte=65_535))
    ] = 8787,
    db: Db = None,
    no_ui: Annotated[bool, Parameter(help="Serve only the API and the proxy.")] = False,
    sample: Annotated[
        bool, Parameter(help="Add two sample conversations to an empty store.")
    ] = False,
    log: Annotated[
        Literal["auto", "quiet", "json"],
        Parameter(
            help="The log on standard error: `quiet` has warnings and errors, `json` has every "
            "request as JSON Lines. `auto` is quiet on a terminal."
        ),
    ] = "auto",
    # `enfold wrap` starts the server with these two.
    fd: Annotated[int | None, Parameter(show=False)] = None,
    until_eof: Annotated[bool, Parameter(show=False)] = False,
) -> None:
    """Serve the web UI, the API and the proxy; Ctrl+C stops it."""
    # Nearly all that is loaded stays: garbage is collected as soon as the server is ready.
    gc.disable()
    try:
        # The server is loaded by name: the command line only starts it.
        server = import_module("enfold.server")
        options = server.ServeOptions(
            host,
            port,
            db,
            ui=not no_ui,
            sample=sample,
            fd=fd,
            until_eof=until_eof,
            quiet=log == "quiet" or (log == "auto" and sys.stderr.isatty()),
        )
        server.run(options, partial(_print_addresses, ui=not no_ui and server.has_ui()))
    finally:
        gc.enable()
    say("stopped; all work in progress is finished")


def _print_addresses(address: str, *, ui: bool) -> None:
    say(f"enfold serves on {address}")
    if ui:
        say(f"  UI        open {address} in a browser")
    say(f"  API       {address}/api, documented at {address}/docs")
    say(f"  OpenAI    set a client's base URL to {address}/v1")
    say(f"  Anthropic set a client's base URL to {address}")
    say(f"  health    {address}/readyz, figures at {address}/metrics")
    say("Ctrl+C stops it.")
