"""PostgreSQL: lost connections, locks, passwords, and what is said of them."""

from __future__ import annotations

import asyncio
import builtins
import time
from typing import TYPE_CHECKING, Any

import pytest

from enfold.errors import ConfigError, StoreUnavailableError, facts
from enfold.store import Database, Store, catalog, open_store
from enfold.store.postgresql import PostgreSQL

if TYPE_CHECKING:
    from tests.databases import Server

KILL_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = 'enfold' AND pid <> pg_backend_pid()"
)


@pytest.fixture
def url(server: Server) -> str:
    """Only this engine."""
    return server.emptied_database()


async def test_a_connection_lost_between_calls_is_not_noticed(
    store: Store, server: Server, url: str
) -> None:
    await asyncio.gather(*(store.read(catalog.settings, "global") for _ in range(20)))
    server.execute(url, KILL_OTHERS)
    await asyncio.gather(*(store.read(catalog.settings, "global") for _ in range(20)))
    server.execute(url, KILL_OTHERS)
    await store.write(catalog.put_setting, "global", "a", 1)
    assert await store.read(catalog.settings, "global") == {"a": 1}


async def test_a_connection_lost_in_a_transaction(store: Store, server: Server, url: str) -> None:
    def write_and_lose(db: Database) -> None:
        catalog.put_setting(db, "global", "a", value=1)
        server.execute(url, KILL_OTHERS)
        catalog.put_setting(db, "global", "b", value=1)

    with pytest.raises(StoreUnavailableError) as caught:
        await store.write(write_and_lose)
    assert facts(caught.value).retryable
    assert await store.read(catalog.settings, "global") == {}
    await store.write(catalog.put_setting, "global", "a", 2)
    assert await store.read(catalog.settings, "global") == {"a": 2}


async def test_a_server_that_stops_and_comes_back(store: Store, server: Server) -> None:
    await store.write(catalog.put_setting, "global", "a", 1)
    server.stop()
    try:
        for _ in range(3):
            with pytest.raises(StoreUnavailableError, match="try again"):
                await store.read(catalog.settings, "global")
    finally:
        server.start()
    assert await store.read(catalog.settings, "global") == {"a": 1}


async def test_a_locked_row_is_an_error_and_a_later_write_succeeds(
    server: Server, url: str
) -> None:
    import psycopg

    async with await open_store(url, patience=0.1) as store:
        await store.write(catalog.put_setting, "global", "a", 1)
        with psycopg.connect(url) as other:
            other.execute("SELECT 1 FROM settings FOR UPDATE")
            with pytest.raises(StoreUnavailableError, match="locked"):
                await store.write(catalog.put_setting, "global", "a", 2)
        await store.write(catalog.put_setting, "global", "a", 3)
        assert await store.read(catalog.settings, "global") == {"a": 3}


async def test_no_connection_is_left_behind(server: Server) -> None:
    import psycopg

    url = server.new_database()
    async with await open_store(url) as store:
        await asyncio.gather(*(store.read(catalog.settings, "global") for _ in range(30)))
        tasks = [asyncio.create_task(store.read(catalog.settings, "g")) for _ in range(30)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with psycopg.connect(url) as other:
            assert _connections(other) <= 8
    # One transaction would see the same connections for ever, those that are just being closed too.
    with psycopg.connect(url, autocommit=True) as other:
        await asyncio.to_thread(_wait_for_no_connection, other)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:hush%20hush@127.0.0.1:1/name",
        "postgres://ann:hush%20hush@127.0.0.1:1/name?connect_timeout=2",
        "postgresql://127.0.0.1:1/name?user=ann&password=hush%20hush",
    ],
)
async def test_a_password_is_never_shown(address: str) -> None:
    engine = PostgreSQL(address, patience=1)
    assert "hush" not in engine.url
    assert "127.0.0.1:1/name" in engine.url
    assert "***" in engine.url
    with pytest.raises(StoreUnavailableError) as caught:
        await open_store(address, patience=1)
    error: BaseException | None = caught.value
    assert "hush" not in str(error)
    assert "cannot be reached" in str(error)
    assert error is not None
    assert error.__suppress_context__


def test_server_errors_are_shown_without_rows_and_passwords() -> None:
    import psycopg

    engine = PostgreSQL("postgresql://ann:hush@localhost/name", patience=1)
    error = psycopg.OperationalError(
        "the address postgresql://ann:hush@localhost is bad\nDETAIL: x"
    )
    translated = engine.translate(error)
    assert isinstance(translated, StoreUnavailableError)
    assert "hush" not in str(translated)
    assert "DETAIL" not in str(translated)


async def test_values_stay_out_of_errors(store: Store) -> None:
    secret = "INSERT INTO settings VALUES ('swordfish', 'b', '1', 1), ('swordfish', 'b', '1', 1)"
    with pytest.raises(Exception, match="duplicate key") as caught:
        await store.write(Database.run_statements, [secret])
    assert "swordfish" not in str(caught.value)


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_psycopg(name: str, *rest: Any, **more: Any) -> Any:
        if name == "psycopg":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_psycopg)
    with pytest.raises(ConfigError, match=r"enfold\[postgres\]"):
        PostgreSQL("postgresql://localhost/name", patience=1)


def _wait_for_no_connection(other: Any) -> None:
    """The server takes a moment to notice."""
    while _connections(other):
        time.sleep(0.01)


def _connections(other: Any) -> int:
    query = (
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE application_name = 'enfold' AND datname = current_database()"
    )
    return int(other.execute(query).fetchone()[0])
