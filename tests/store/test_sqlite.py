"""SQLite: faults of a file and their errors."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tests.conftest import ROOT
from tests.store.samples import draft, numbered

from enfold.errors import ConfigError, StoreError, StoreUnavailableError, facts
from enfold.store import Database, Store, catalog, open_store, sessions, sqlite, tree
from enfold.store.sqlite import SQLite


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def url(path: Path) -> str:
    """Only this engine."""
    return f"sqlite:///{path}"


async def test_the_database_is_durable_and_shared(store: Store) -> None:
    def pragmas(db: Database) -> list[object]:
        names = ("journal_mode", "synchronous", "foreign_keys")
        return [db._cursor().execute(f"PRAGMA {name}").fetchone()[0] for name in names]

    assert await store.write(pragmas) == ["wal", 2, 1]
    assert await store.read(pragmas) == ["wal", 2, 1]


async def test_the_version_changes_with_every_commit(url: str, store: Store) -> None:
    def put(db: Database, value: int) -> None:
        catalog.put_setting(db, "global", "a", value)

    assert store.version() is None  # nothing was written with a version yet
    _, first = await store.append_versioned(put, 1)
    assert first is not None
    assert store.version() == first
    await store.read(catalog.settings, "global")
    assert store.version() == first
    await store.write(put, 2)
    second = store.version()
    async with await open_store(url) as other:
        await other.write(put, 3)
    third = store.version()
    assert len({first, second, third}) == 3


async def test_a_commit_right_after_ours_leaves_no_version(path: Path, url: str) -> None:
    class Late(sqlite.FileVersions):
        """Versions that are read after another process has committed."""

        def current(self) -> int | None:
            with closing(sqlite3.connect(path)) as other, other:
                other.execute("UPDATE settings SET value = '2'")
            return super().current()

    async with await open_store(url) as store:
        assert store._versions is not None
        _, version = await store.append_versioned(catalog.put_setting, "global", "a", 1)
        assert version == store.version()
        store._versions = Late(SQLite(url, patience=1))
        _, version = await store.append_versioned(catalog.put_setting, "global", "a", 1)
        assert version is None
        store._versions.close()


async def test_a_locked_database(path: Path, url: str) -> None:
    async with await open_store(url, patience=0.05) as store:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match="locked") as caught:
            await store.write(catalog.put_setting, "global", "a", 1)
        assert facts(caught.value).retryable
        assert await store.read(catalog.settings, "global") == {}
        other.execute("ROLLBACK")
        other.close()
        await store.write(catalog.put_setting, "global", "a", 2)
        assert await store.read(catalog.settings, "global") == {"a": 2}


async def test_a_full_database(store: Store) -> None:
    session = await store.write(sessions.get_or_create, "ours", "chat")
    line = await store.write(tree.append, session.key, numbered(3))

    def limit(db: Database, pages: int) -> None:
        used = db._cursor().execute("PRAGMA page_count").fetchone()[0]
        db._cursor().execute(f"PRAGMA max_page_count = {used + pages}").fetchone()

    await store.write(limit, 5)
    with pytest.raises(StoreUnavailableError, match="space"):
        await store.write(tree.append, session.key, [draft("x" * 100_000), draft("y")])
    assert await store.read(tree.path, session.key) == line
    assert (await store.read(sessions.get, session.key)).tip == line[-1].id
    await store.write(limit, 500)
    await store.write(tree.append, session.key, [draft("x" * 100_000)])
    assert len(await store.read(tree.path, session.key)) == 4


FILL_THE_DISK = """
import asyncio, resource, sys
from enfold.errors import StoreUnavailableError
from enfold.store import open_store, sessions, tree
from tests.store.samples import draft

async def main():
    async with await open_store(sys.argv[1]) as store:
        session = await store.write(sessions.get_or_create, "ours", "chat")
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
        written = 0
        try:
            while True:
                await store.write(tree.append, session.key, [draft(f"{written} " + "x" * 50_000)])
                written += 1
        except StoreUnavailableError as error:
            print(written, len(await store.read(tree.path, session.key)), error)

asyncio.run(main())
"""


@pytest.fixture
def filled(url: str) -> int:
    """Return the number of messages written when no file could grow any more.

    A file that may not grow is to SQLite what a disk without room is.
    """
    done = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, url],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    written, read, stderr = done.stdout.split(maxsplit=2)
    assert int(written) == int(read) > 5
    assert "disk failed or is full" in stderr
    return int(written)


async def test_a_full_disk(url: str, filled: int) -> None:
    async with await open_store(url) as store:
        session = await store.read(sessions.find, "ours", "chat")
        assert session is not None
        assert session.depth == filled
        await store.write(tree.append, session.key, numbered(1))


@pytest.fixture
def folder(path: Path) -> Path:
    path.mkdir()
    return path


async def test_a_folder_in_place_of_a_file(folder: Path, url: str) -> None:
    with pytest.raises(StoreUnavailableError, match="cannot be opened"):
        await open_store(url)


@pytest.fixture(params=["another kind", "damaged"])
def broken(request: pytest.FixtureRequest, path: Path) -> Path:
    content = b"not a database at all, but long enough " * 100
    if request.param == "damaged":
        other = sqlite3.connect(path)
        other.execute("CREATE TABLE t (a)")
        other.commit()
        other.close()
        content = path.read_bytes()[:100] + b"\xa5" * 8_092
    path.write_bytes(content)
    return path


async def test_a_file_that_is_no_database(broken: Path, url: str) -> None:
    with pytest.raises(StoreError) as caught:
        await open_store(url)
    assert str(broken) in str(caught.value)
    assert not isinstance(caught.value, StoreUnavailableError)


async def test_another_programs_tables_are_left_alone(path: Path, url: str) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE sessions (theirs)")
    other.commit()
    with pytest.raises(StoreError, match="sessions already exists"):
        await open_store(url)
    assert [row[0] for row in other.execute("SELECT name FROM sqlite_master")] == ["sessions"]
    other.close()


def test_an_old_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with pytest.raises(ConfigError, match=r"3\.37"):
        SQLite("sqlite:///:memory:", patience=1)


def test_every_failure_that_may_pass_says_what_to_do() -> None:
    for advice in sqlite._UNAVAILABLE.values():
        assert ";" in advice


async def test_only_the_owner_reads_the_files(path: Path, url: str) -> None:
    async with await open_store(url) as store:
        await store.write(sessions.get_or_create, "ours", "chat")
        assert _rights(path) == {0o600: 3}
    os.chmod(path, 0o644)  # noqa: PTH101 - a test may block
    async with await open_store(url):
        assert set(_rights(path)) == {0o600}


def _rights(path: Path) -> Counter[int]:
    return Counter(file.stat().st_mode & 0o777 for file in path.parent.glob("store.db*"))


def test_a_new_file_that_another_writes_is_opened_after_that(path: Path, url: str) -> None:
    with ThreadPoolExecutor(1) as threads, closing(sqlite3.connect(path)) as other:
        other.executescript("CREATE TABLE first (a); BEGIN IMMEDIATE;")
        opened = threads.submit(SQLite(url, patience=600).connect)
        with pytest.raises(TimeoutError):
            opened.result(timeout=0.2)
        other.rollback()
        opened.result().close()
