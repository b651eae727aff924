"""`enfold wrap`: run a coding agent with its requests going through a local server."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from enfold.cli.screen import Db, put, say
from enfold.errors import ConfigError, EnfoldError
from enfold.settings import database_url, environment, user_folder
from enfold.wrap import local_server
from enfold.wrap.agents import (
    AGENTS,
    Agent,
    Launch,
    direct_loopback,
    find_program,
    run_in_foreground,
)
from enfold.wrap.local_server import DEFAULT_PORT, HOST, LocalServer, ServerOptions

app = App(
    name="wrap",
    help_epilogue="""\
None of the agent's files is changed. Options of enfold come before the
agent's name.

Examples:
  enfold wrap claude
  enfold wrap codex exec "Fix the failing test"
  enfold wrap --print opencode""",
)

_NOT_FOR_SERVER = ("ENFOLD_TOKEN",)
"""The server serves this machine only, and the agent has no access token."""


@app.default
def wrap(
    agent: Annotated[str, Parameter(help=f"The agent: {', '.join(AGENTS)}.")],
    /,
    *arguments: Annotated[
        str, Parameter(help="Arguments of the agent.", allow_leading_hyphen=True)
    ],
    show: Annotated[
        bool,
        Parameter(name="--print", help="Print what would be set, as shell lines; start nothing."),
    ] = False,
    port: Annotated[
        int | None,
        Parameter(
            help=f"The port of the server. A server that runs there is reused, else one is "
            f"started. If unset: {DEFAULT_PORT} to reuse, any free port to start.",
            validator=Number(gte=1, lte=65_535),
        ),
    ] = None,
    db: Db = None,
    no_ui: Annotated[bool, Parameter(help="Start the server without the web UI.")] = False,
) -> int:
    """Run a coding agent with its requests going through enfold."""
    if (found := AGENTS.get(agent)) is None:
        raise ConfigError(f"no agent {agent!r}; available: {', '.join(AGENTS)}")
    given = environment()
    found.check(given)
    folder = user_folder("data")
    if show:
        launch = found.launch(f"http://{HOST}:{port or DEFAULT_PORT}", given, folder)
        _print_launch(found, launch, arguments, given, port or DEFAULT_PORT)
        return 0
    program = find_program(found, given)
    for_server = {name: value for name, value in given.items() if name not in _NOT_FOR_SERVER}
    for_server |= found.upstream_variables(given)
    log = user_folder("log") / "wrap.log"
    options = ServerOptions(db or database_url(), port, log, ui=not no_ui)
    with local_server.open_server(for_server, options) as server:
        if sys.stderr is not None and sys.stderr.isatty() and not no_ui:
            say(f"enfold: {found.title} runs through {server.address}; watch it there in a browser")
        launch = found.launch(server.address, given, folder)
        for path, text in launch.files.items():
            path.write_text(text, "utf-8")
            path.chmod(0o600)
        variables = {**given, **direct_loopback(given), **launch.variables}
        code = run_in_foreground(program, [*launch.arguments, *arguments], variables)
        _report(server)
    return code


def _report(server: LocalServer) -> None:
    try:
        figures = server.figures()
    except EnfoldError as error:
        say(f"enfold: the figures of this run are not available: {error}")
        return
    if figures.requests:
        where = server.address if server.is_reused else "enfold sessions"
        say(f"enfold: {figures}; details: {where}")
    else:
        say(
            "enfold: no request of the agent came through; see its page in the documentation "
            "(enfold doctor checks the setup)"
        )


def _print_launch(
    agent: Agent, launch: Launch, arguments: tuple[str, ...], given: Mapping[str, str], port: int
) -> None:
    variables = {**local_server.SERVER_SETTINGS, **agent.upstream_variables(given)}
    settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    put(f"# The server, in another terminal: {settings} enfold serve --port {port}")
    for path, text in launch.files.items():
        put(f"printf %s {shlex.quote(text)} > {shlex.quote(str(path))}")
    for name, value in {**direct_loopback(given), **launch.variables}.items():
        put(f"export {name}={shlex.quote(value)}")
    put(shlex.join([agent.name, *launch.arguments, *arguments]))
