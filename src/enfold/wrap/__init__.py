"""Running coding agents through enfold: one command, and none of the agent's files is changed.

`agents` has one row per agent: its program and how its requests are redirected. `local_server`
starts or reuses a server on loopback. `foreground` runs the agent with the terminal and signals.
"""

from __future__ import annotations

from enfold.wrap.agents import AGENTS, Agent, Launch, find_program, run_in_foreground
from enfold.wrap.local_server import LocalServer, RunFigures, ServerOptions, open_server

__all__ = [
    "AGENTS",
    "Agent",
    "Launch",
    "LocalServer",
    "RunFigures",
    "ServerOptions",
    "find_program",
    "open_server",
    "run_in_foreground",
]
