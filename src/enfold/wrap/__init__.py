"""Running coding agents through enfold: one command, and none of the agent's files is changed.

`agents` has one row per agent, with its program and the way its requests are redirected. It runs an
agent in the foreground, with the terminal and signals. `local_server` starts or reuses a server on
loopback.
"""
