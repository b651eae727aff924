"""Running coding agents through enfold: one command, and none of the agent's files is changed.

`agents` has one row per agent, with its program and how its requests are redirected, and runs it
with the terminal and signals. `local_server` starts or reuses a server on loopback.
"""
