"""Opening a store: addresses, what is shown of them, and what cannot be opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from enfold.errors import ConfigError
from enfold.store import Store, catalog, open_store


async def test_a_store_says_where_it_is(store: Store, url: str) -> None:
    assert store.url == url
    assert repr(store) == f"Store('{url}')"
    assert url.startswith(store.engine)


async def test_a_store_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with (
        await open_store("sqlite:///:memory:") as one,
        await open_store("sqlite:///:memory:") as other,
    ):
        await one.write(catalog.put_setting, "global", "a", 1)
        assert await one.read(catalog.settings, "global") == {"a": 1}
        assert await other.read(catalog.settings, "global") == {}
    assert not _files(tmp_path)


async def test_relative_absolute_and_home(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for address, file in (
        ("sqlite:///a b.db", tmp_path / "a b.db"),
        (f"sqlite:///{tmp_path}/é.db", tmp_path / "é.db"),
        ("sqlite:///~/home.db", own_home / "home.db"),
    ):
        async with await open_store(address):
            assert file.exists()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "chats.db",
        "mysql://user:secret@host/name",
        "sqlite://chats.db",
        "sqlite:chats.db",
        "sqlite:///",
        "sqlite:///chats.db?mode=ro",
        "sqlite:////no/such/folder/chats.db",
        "postgresql://user:secret@host:port/name",
        "postgresql://user:secret@[host/name",
        "postgresql://user:secret@host/name?secret=1",
    ],
    ids=repr,
)
async def test_an_address_that_cannot_be(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await open_store(address)
    assert "secret" not in str(caught.value)
    assert "sqlite:///" in str(caught.value) or "postgresql://" in str(caught.value)


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir())
