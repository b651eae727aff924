"""Server processes that share a database: `python benchmarks/scale.py [--pg URL]`.

Conversations grow through the proxy by one exchange per request, as clients send them: the whole
history each time. Requests go to the processes in turn. The figures are CPU times of the servers
and of the database, so other work on the machine hardly changes them, and the growth of the
database. Without `--pg` only one process with SQLite is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.request import Request, urlopen

from proxy import HERE, free_port, running

TICKS = os.sysconf("SC_CLK_TCK")
SETTLING = 5.0
"""Seconds for work that a server does after its answers."""


def requests(mark: str, conversations: int, turns: int) -> Iterator[bytes]:
    """Yield the requests of conversations that grow, the first turns of all of them first."""
    for turn in range(1, turns + 1):
        for name in range(conversations):
            messages = [
                {
                    "role": role,
                    "content": f"{mark}, chat {name}, {role} {step}: see src/part_{step}.py. "
                    + "The deployment waits for the review. " * 8,
                }
                for step in range(turn)
                for role in ("user", "assistant")
            ]
            yield json.dumps({"model": "gpt-4o", "messages": messages[:-1]}).encode()


def cpu_seconds(processes: list[int]) -> float:
    """Return the CPU time of processes and of their children that have ended."""
    return sum(sum(map(int, _fields(process)[11:15])) for process in processes) / TICKS


def _fields(process: int) -> list[str]:
    """Return the fields of a process's status after its name: state, parent and so on."""
    return Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()


def database_process(url: str) -> int | None:
    """Return the main process of the PostgreSQL server on this machine; None for SQLite."""
    if not url.startswith("postgresql"):
        return None
    import psycopg

    with psycopg.connect(url) as connection:
        (found,) = connection.execute("SELECT pg_backend_pid()").fetchall()
        return int(_fields(found[0])[1])


def database_cpu_seconds(main: int | None) -> float:
    """Return the CPU time of a PostgreSQL server and of all its processes."""
    if main is None:
        return 0.0
    while True:
        children = Path(f"/proc/{main}/task/{main}/children").read_text("ascii").split()
        try:
            return cpu_seconds([*map(int, children), main])
        except FileNotFoundError:
            # A process ended after it was listed. Its time counts for the main process now.
            continue


def stored_bytes(url: str) -> int:
    """Return the size of the database."""
    if url.startswith("postgresql"):
        import psycopg

        with psycopg.connect(url) as connection:
            connection.execute("CHECKPOINT")
            query = "SELECT pg_database_size(current_database())"
            return int(connection.execute(query).fetchall()[0][0])
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        query = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        return int(connection.execute(query).fetchone()[0])


def send(port: int, body: bytes) -> None:
    """Send a request and read the answer."""
    headers = {"content-type": "application/json", "authorization": "Bearer sk-bench"}
    address = f"http://127.0.0.1:{port}/v1/chat/completions"
    urlopen(Request(address, data=body, headers=headers), timeout=120).read()


def measure(url: str, processes: int, conversations: int, turns: int) -> str:
    """Return the figures of that many processes with one database."""
    with ExitStack() as stack:
        target = free_port()
        command = [sys.executable, str(HERE), "upstream", str(target)]
        stack.enter_context(running(command, target, None))
        servers: dict[int, int] = {}
        for _ in range(processes):
            port = free_port()
            command = [sys.executable, "-m", "enfold.cli", "serve", "--no-ui", f"--port={port}"]
            variables = {
                "ENFOLD_OPENAI_BASE_URL": f"http://127.0.0.1:{target}/v1",
                "ENFOLD_DB": url,
            }
            servers[port] = stack.enter_context(running(command, port, None, **variables))
        ports, working = list(servers), list(servers.values())
        for port in ports:
            for body in requests(f"warm {processes} {port}", 2, 5):
                send(port, body)
        time.sleep(SETTLING)
        database = database_process(url)
        served, stored, size = (
            cpu_seconds(working),
            database_cpu_seconds(database),
            stored_bytes(url),
        )
        count = 0
        for count, body in enumerate(requests(f"run {processes}", conversations, turns), 1):
            send(ports[count % processes], body)
        time.sleep(SETTLING)
        served = cpu_seconds(working) - served
        stored = database_cpu_seconds(database) - stored
        added = stored_bytes(url) - size
    messages = conversations * (2 * turns - 1)
    return (
        f"| {processes} | {url.partition(':')[0]} | {count:,} | {served / count * 1e3:.2f} ms | "
        f"{stored / count * 1e3:.2f} ms | {added / messages:,.0f} |"
    )


def main() -> None:
    """Print one row for each number of processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pg", help="the address of an empty PostgreSQL database")
    parser.add_argument("--conversations", type=int, default=20)
    parser.add_argument("--turns", type=int, default=25)
    options = parser.parse_args()
    print("| processes | database | requests | CPU per request | database | bytes per message |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        rows = [(f"sqlite:///{folder}/scale.db", 1)]
        rows += [(options.pg, number) for number in (1, 3) if options.pg]
        for url, processes in rows:
            print(measure(url, processes, options.conversations, options.turns), flush=True)


if __name__ == "__main__":
    main()
