"""Torture: processes are killed in the middle of their work; nothing acknowledged may be missing.

    python -m tests.torture [--kills 200] [--postgresql 50] [--seed 7]

Half of the kills hit a process that uses the library, a quarter each `enfold import` and
`enfold serve`. After each kill the database is opened again; in the end `enfold verify` must find
nothing. Then the newest part of SQLite's log is cut off, as a power loss does, the database becomes
read-only and full, and the clock is set back.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from enfold.engine.verification import verify
from enfold.errors import StoreUnavailableError
from enfold.store import Database, open_store, outbox, sessions, tree
from tests import databases
from tests.conftest import ROOT
from tests.store import hammer
from tests.store.samples import draft

IMPORTED = 12_000
"""Messages of the imported conversation: more than one transaction stores."""
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


@dataclass(frozen=True, slots=True)
class Kills:
    """Number of kills of each kind of process."""

    library: int
    imports: int
    servers: int

    @classmethod
    def of(cls, total: int) -> Kills:
        """Split a number of kills."""
        quarter = total // 4
        return cls(total - 2 * quarter, quarter, quarter)


def torture(url: str, kills: Kills, folder: Path, seed: int) -> str:
    """Kill processes that use a database; return a line about what survived."""
    dice = random.Random(seed)
    if kills.library:
        hammer.main(url, kills.library, seed)
    imports = kill_imports(url, kills.imports, folder, dice)
    appended = kill_servers(url, kills.servers, dice)
    asyncio.run(check_verified(url))
    return (
        f"{url.partition(':')[0]}: {kills.library} kills of the library, {kills.imports} of "
        f"imports ({imports}), {kills.servers} of servers ({appended} messages): "
        "nothing is missing, everything verifies"
    )


async def check_verified(url: str) -> None:
    """Raise an error if any stored row is missing or changed."""
    async with await open_store(url) as store:
        found = await verify(store)
    assert found.ok, found.problems[:5]


def kill_imports(url: str, kills: int, folder: Path, dice: random.Random) -> dict[str, int]:
    """Kill imports of one file, each at another moment; then let one finish.

    Return the states of the import after the kills.
    """
    if not kills:
        return {}
    file = folder / "long.json"
    messages = [{"role": "user", "content": f"imported message {n}"} for n in range(IMPORTED)]
    file.write_text(json.dumps(messages), encoding="utf-8")
    command = [sys.executable, "-m", "enfold.cli", "import", str(file), "--db", url]
    states: Counter[str] = Counter()
    longest = 3.0  # seconds until the kill, adapted to the time that an import takes here
    for _ in range(kills):
        asyncio.run(_delete_session(url, "imported-1"))
        quiet = subprocess.DEVNULL
        child = subprocess.Popen(command, env=ENVIRONMENT, stdout=quiet, stderr=quiet)
        time.sleep(longest * (0.3 + 0.7 * dice.random()))
        child.send_signal(signal.SIGKILL)
        child.wait()
        state = asyncio.run(_check_import(url))
        states[state] += 1
        longest *= {"absent": 1.25, "begun": 1.0, "whole": 0.8}[state]
    subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True)
    assert asyncio.run(_check_import(url)) == "whole"
    return dict(states)


async def _delete_session(url: str, name: str) -> None:
    async with await open_store(url) as store:
        found = await store.read(sessions.find, "", name)
        if found is not None and found.importing is None:
            await store.write(sessions.delete, found.key)


async def _check_import(url: str) -> str:
    """Return the state of the import: absent, begun and marked, or whole."""
    async with await open_store(url) as store:
        found = await store.read(sessions.find, "", "imported-1")
        if found is None:
            return "absent"
        stored = await store.read(tree.path, found.key)
        if found.importing is not None:
            assert found.importing == IMPORTED
            assert 0 < len(stored) < IMPORTED
            return "begun"
        assert len(stored) == IMPORTED
        return "whole"


def kill_servers(url: str, kills: int, dice: random.Random) -> int:
    """Kill servers while they append; return the number of acknowledged messages."""
    acknowledged: list[str] = []
    for number in range(kills):
        acknowledged += _kill_server(url, number, dice)
    asyncio.run(_check_acknowledged(url, acknowledged))
    return len(acknowledged)


def _kill_server(url: str, number: int, dice: random.Random) -> list[str]:
    """Return the ids of the messages that a server acknowledged before it was killed."""
    server = subprocess.Popen(
        [sys.executable, "-m", "enfold.cli", "serve", "--port", "0", "--no-ui", "--db", url],
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    address = ""
    for line in server.stderr:
        if found := re.search(r"http://[\d.]+:\d+", line):
            address = found[0]
            break
    assert address, "the server did not start"
    _post(f"{address}/api/sessions", {"id": "served"})
    ids: list[str] = []
    target = f"{address}/api/sessions/served/messages"
    for count in range(dice.randrange(1, 12)):
        body = {"messages": [{"role": "user", "content": f"life {number}, message {count}"}]}
        ids += _post(target, body)["ids"]
    process = os.fork()
    if not process:  # a client whose last requests are cut off
        for count in range(1_000):
            try:
                _post(target, {"messages": [{"role": "user", "content": f"{number} cut {count}"}]})
            except (urllib.error.URLError, OSError):
                os._exit(0)
        os._exit(0)
    time.sleep(dice.random() * 0.05)
    server.send_signal(signal.SIGKILL)
    server.wait()
    server.stderr.close()
    os.waitpid(process, 0)
    return ids


def _post(address: str, body: object) -> dict[str, list[str]]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: dict[str, list[str]] = json.loads(answer.read())
        return found


async def _check_acknowledged(url: str, ids: list[str]) -> None:
    async with await open_store(url) as store:
        found = await store.read(sessions.find, "", "served")
        stored = await store.read(tree.path, found.key) if found is not None else ()
    missing = set(ids) - {message.id for message in stored}
    assert not missing, f"{len(missing)} acknowledged messages are missing"


async def cut_log(path: Path, cuts: int, dice: random.Random) -> None:
    """Cut SQLite's log after the last acknowledged write, as a power loss does."""
    for number in range(cuts):
        url = f"sqlite:///{path}"
        store = await open_store(url)
        session = await store.write(sessions.get_or_create, "ours", "cut")
        (last,) = await store.write(tree.append, session.key, [draft(f"acknowledged {number}")])
        log = path.with_name(path.name + "-wal")
        safe = log.stat().st_size
        await store.write(tree.append, session.key, [draft("x" * 5_000 + str(number))])
        copy = path.with_name(f"copy-{number}.db")
        shutil.copy(path, copy)
        written = log.read_bytes()
        kept = dice.randrange(safe, len(written) + 1) if len(written) > safe else len(written)
        copy.with_name(copy.name + "-wal").write_bytes(written[:kept])
        await store.close()
        await check_verified(f"sqlite:///{copy}")
        async with await open_store(f"sqlite:///{copy}") as opened:
            assert (await opened.read(tree.get, session.key, last.id)).body == last.body


async def refuse_writes(path: Path) -> None:
    """A database that is full or read-only refuses writes and keeps what it has."""
    async with await open_store(f"sqlite:///{path}") as store:
        session = await store.write(sessions.get_or_create, "ours", "refused")
        line = await store.write(tree.append, session.key, [draft("before")])
        full, read_only = (
            ("max_page_count = 1", "max_page_count = 1000000000"),
            ("query_only = ON", ""),
        )
        for setting, reset in (full, read_only):
            await store.write(_set, setting)
            # More than fits into pages that deleted sessions have left.
            text = setting + "x" * (100_000 + await store.read(_free_bytes))
            try:
                await store.write(tree.append, session.key, [draft(text)])
            except StoreUnavailableError:
                assert await store.read(tree.path, session.key) == line
            else:
                raise AssertionError(f"a write with {setting} succeeded")
            if reset:
                await store.write(_set, reset)
    await check_verified(f"sqlite:///{path}")


def _set(db: Database, setting: str) -> None:
    db._cursor().execute(f"PRAGMA {setting}").fetchall()


async def set_clock_back(path: Path) -> None:
    """A dead holder's lease ends after its time although the clock was set back."""
    async with await open_store(f"sqlite:///{path}") as store:
        assert await store.write(outbox.acquire, "torture", "dead", seconds=0.2)
        late = ["UPDATE leases SET expires_at = expires_at + 3600000"]
        await store.write(Database.run_statements, late)
        assert await store.write(outbox.acquire, "torture", "me", seconds=0.2) is None
        await asyncio.sleep(0.3)
        assert await store.write(outbox.acquire, "torture", "me", seconds=0.2)


def _free_bytes(db: Database) -> int:
    """Return the size of the pages that a write may use although the database is full."""
    cursor = db._cursor()
    pages = cursor.execute("PRAGMA freelist_count").fetchone()["freelist_count"]
    size: int = cursor.execute("PRAGMA page_size").fetchone()["page_size"]
    return size * int(pages)


@contextmanager
def postgresql() -> Iterator[str]:
    """The address of a new database on a server of its own."""
    folder = Path(tempfile.mkdtemp(prefix="enfold-pg-"))
    try:
        with databases.running(folder) as server:
            yield server.new_database()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    """Run everything and report it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--postgresql", type=int, default=50)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="enfold-torture-") as name:
        folder = Path(name)
        path = folder / "store.db"
        say(torture(f"sqlite:///{path}", Kills.of(given.kills), folder, given.seed))
        asyncio.run(cut_log(path, 20, random.Random(given.seed)))
        asyncio.run(refuse_writes(path))
        asyncio.run(set_clock_back(path))
        say("cut log, full, read-only, clock set back: nothing is missing")
        if given.postgresql:
            try:
                with postgresql() as url:
                    say(torture(url, Kills.of(given.postgresql), folder, given.seed))
            except pytest.skip.Exception as reason:
                say(f"PostgreSQL: {reason}")


if __name__ == "__main__":
    main()
