"""Upgrades of databases that enfold 0.1 wrote: everything is there, also after a killed migration.

`databases/` has one of each engine. They were written by the code of 0.1, with sessions, branches,
a summary, shortened results, an access token and a session of a proxy client.
"""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.conftest import ROOT

import enfold
from enfold.engine.verification import verify
from enfold.records import SearchScope
from enfold.store import access, open_store, search
from enfold.store.database import migrations

if TYPE_CHECKING:
    from tests.databases import Server

DATABASES = Path(__file__).parent / "databases"
ODD = "nul \u0000, lone \ud800, big"


@pytest.fixture(params=["sqlite", "postgresql"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a database as 0.1 left it."""
    if request.param == "sqlite":
        path = tmp_path / "old.db"
        path.write_bytes(gzip.decompress((DATABASES / "sqlite-0.1.db.gz").read_bytes()))
        return f"sqlite:///{path}"
    server: Server = request.getfixturevalue("server")
    url = server.new_database()
    dump = gzip.decompress((DATABASES / "postgresql-0.1.sql.gz").read_bytes()).decode()
    server.execute(url, dump.replace("CREATE SCHEMA public;", ""))
    return url


async def _check(url: str) -> None:
    """Everything that 0.1 stored is there, and can be used."""
    async with enfold.open(url) as engine:
        found = await verify(engine.store)
        assert found.problems == ()
        assert (found.sessions, found.messages, found.edits) == (4, 70, 5)
        chat = await engine.find("chat")
        record = await chat.record()
        assert (record.title, record.depth) == ("The old chat", 65)
        view = (await chat.prepare()).view
        assert view.summary == "They agreed on the plan."
        assert sum(shown.edit is not None for shown in view.shown) == 5
        odd = await engine.find("odd")
        assert (await odd.messages())[0].parts[0].text == ODD  # type: ignore[union-attr]
        assert len(await odd.branches()) == 2
        token = await engine.store.read(access.find, "enf_a-token-of-the-old-version")
        assert token is not None
        scope = SearchScope(namespace=token.namespace)
        (hit,) = await engine.store.read(search.search, "tea", scope)
        assert hit.session_id == "hers"
        await engine.access.list_client_sessions()
        names = [each.id for each in await engine.sessions()]
        assert len(names) == 3  # the client's session is the owner's now
        assert (await engine.settings()).threshold == 0.9
        await chat.append("one more")
        assert (await verify(engine.store)).ok


async def test_a_database_of_0_1_is_upgraded(old: str) -> None:
    await _check(old)


KILLED_AT_THE_LAST_STEP = """
import asyncio, sys, time
from enfold.store import database, open_store
newest = database.migrations(sys.argv[2])[-1]
run = database.Database.run_statements

def run_slowly(self, statements):
    if statements == newest.statements:
        print("migrating", flush=True)
        time.sleep(600)
    run(self, statements)

database.Database.run_statements = run_slowly
asyncio.run(open_store(sys.argv[1]))
"""


async def test_a_killed_migration_loses_nothing(old: str) -> None:
    engine = "sqlite" if old.startswith("sqlite") else "postgresql"
    _kill_while_migrating(old, engine)
    await _check(old)
    async with await open_store(old) as store:
        versions = await store.read(
            lambda db: db._cursor().execute("SELECT version FROM schema_migrations").fetchall()
        )
        assert len(versions) == len(migrations(engine))


def _kill_while_migrating(url: str, engine: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_AT_THE_LAST_STEP, url, engine],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "migrating\n"
        child.send_signal(signal.SIGKILL)
