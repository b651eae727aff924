"""Keys: found where a profile says, sealed and opened, and never told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import keyring
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from enfold.errors import ConfigError
from enfold.llm.calls import Secret
from enfold.llm.keys import Keys, check_source
from enfold.llm.providers import PROVIDERS

KEY = "sk-very-secret-7f3a"
OPENAI, COMPATIBLE = PROVIDERS["openai"], PROVIDERS["compatible"]
MASTER = {"ENFOLD_SECRET_KEY": "correct horse battery staple"}


class Drawer(KeyringBackend):
    """A keyring in memory; a forgetful one keeps nothing."""

    priority = 1

    def __init__(self, *, forgetful: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the library's own has no types
        self.forgetful = forgetful
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if not self.forgetful:
            self.entries[service, username] = password


@pytest.fixture(autouse=True)
def no_keyring() -> Iterator[None]:
    """Replace the keyring of the machine."""
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())  # type: ignore[no-untyped-call]  # as above
    yield
    keyring.set_keyring(before)


def keys(environment: Mapping[str, str] = MASTER) -> Keys:
    return Keys(environment.get)


def found(source: str | None, environment: Mapping[str, str]) -> str | None:
    key = keys(environment).find(source, OPENAI, owner="work")
    return None if key is None else key.reveal()


def test_a_key_is_taken_from_the_variable_that_is_named() -> None:
    assert found("env:MY_KEY", {"MY_KEY": f" {KEY}\n", "OPENAI_API_KEY": "other"}) == KEY
    with pytest.raises(ConfigError, match="MY_KEY is not set"):
        found("env:MY_KEY", {"OPENAI_API_KEY": "other"})


def test_without_a_source_the_usual_variables_are_looked_at() -> None:
    assert found(None, {"OPENAI_API_KEY": KEY}) == KEY
    google = keys({"GEMINI_API_KEY": KEY}).find(None, PROVIDERS["google"], owner="g")
    assert google is not None
    assert google.reveal() == KEY
    with pytest.raises(ConfigError, match="no key: OPENAI_API_KEY is not set"):
        found(None, {})
    assert keys({}).find(None, COMPATIBLE, owner="local server") is None


def test_a_key_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    assert found(f"file:{file}", {}) == KEY
    with pytest.raises(ConfigError, match="missing cannot be read"):
        found(f"file:{tmp_path / 'missing'}", {})
    with pytest.raises(ConfigError, match="cannot be read"):
        found(f"file:{tmp_path}", {})


@pytest.mark.parametrize("content", [b"", b" \n", b"sk-one\nsk-two", b"\xff\xfe", b"sk-\xc3\xa9"])
def test_a_file_without_a_usable_key_is_refused_unquoted(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        found(f"file:{file}", {})
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("source", [KEY, "", "env:", f"env:{KEY}", "file:", "STORED", "stored:x"])
def test_an_invalid_key_source_is_refused_and_not_repeated(source: str) -> None:
    with pytest.raises(
        ConfigError, match="expected env:NAME, file:PATH, stored or memory"
    ) as caught:
        check_source(source)
    assert KEY not in str(caught.value)


@settings(max_examples=8)  # deriving a key is slow on purpose
@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1), st.text())
def test_the_owner_can_open_a_sealed_key(key: str, owner: str) -> None:
    sealed = keys().seal(Secret(key), owner=owner)
    assert keys().open(sealed, owner=owner).reveal() == key
    assert len(key) < 4 or key not in sealed


def test_the_same_key_is_sealed_differently_every_time() -> None:
    assert keys().seal(Secret(KEY), owner="a") != keys().seal(Secret(KEY), owner="a")


def test_a_stored_key_is_opened_where_the_profile_says_so() -> None:
    sealed = keys().seal(Secret(KEY), owner="work")
    key = keys().find("stored", OPENAI, owner="work", sealed=sealed)
    assert key is not None
    assert key.reveal() == KEY
    with pytest.raises(ConfigError, match="no key is stored; `enfold profiles set-key work`"):
        keys().find("stored", OPENAI, owner="work")


def test_another_secret_or_owner_or_an_altered_entry_opens_nothing() -> None:
    sealed = keys().seal(Secret(KEY), owner="work")
    other = {"ENFOLD_SECRET_KEY": "another secret altogether"}
    attempts = [
        (keys(other), sealed, "work"),
        (keys(), sealed, "home"),
        (keys(), f"{sealed[:-5]}AAAA=", "work"),
        (keys(), f"v2{sealed[2:]}", "work"),
        (keys(), "v1:", "work"),
        (keys(), "nonsense", "work"),
    ]
    for opener, text, owner in attempts:
        with pytest.raises(ConfigError, match="cannot be opened: ENFOLD_SECRET_KEY") as caught:
            opener.open(text, owner=owner)
        assert KEY not in f"{caught.value!r} {caught.value.__context__!r}"


def test_keys_are_not_stored_without_a_secret_and_the_error_says_why() -> None:
    with pytest.raises(ConfigError, match=r"set ENFOLD_SECRET_KEY .* or use a system with a keyr"):
        keys({}).seal(Secret(KEY), owner="work")
    with pytest.raises(ConfigError, match="has 5 characters; use at least 16"):
        keys({"ENFOLD_SECRET_KEY": "short"}).seal(Secret(KEY), owner="work")


def test_the_keyring_has_a_secret_of_its_own_if_the_environment_has_none() -> None:
    drawer = Drawer()
    keyring.set_keyring(drawer)
    sealed = keys({}).seal(Secret(KEY), owner="work")
    (secret,) = drawer.entries.values()
    assert len(secret) >= 40
    assert keys({}).open(sealed, owner="work").reveal() == KEY
    drawer.entries.clear()
    with pytest.raises(ConfigError, match="nothing to encrypt"):
        keys({}).open(sealed, owner="work")
    assert not drawer.entries  # only storing makes one


def test_a_keyring_that_keeps_nothing_is_none() -> None:
    keyring.set_keyring(Drawer(forgetful=True))
    with pytest.raises(ConfigError, match="nothing to encrypt"):
        keys({}).seal(Secret(KEY), owner="work")


@pytest.mark.parametrize("key", ["", "  ", "two words", "line\nbreak"])
def test_keys_that_no_header_can_carry_are_not_stored(key: str) -> None:
    with pytest.raises(ConfigError, match="the key is"):
        keys().seal(Secret(key), owner="work")
