"""Keys of profiles: their sources, and their encryption in the database.

A profile names the source of its key: `env:NAME`, `file:PATH` or `stored`. The default is the
provider's usual environment variable. A stored key is sealed with a secret that is not in the
database: `ENFOLD_SECRET_KEY`, else an entry of the system's keyring. Without either, no key is
stored. No error message contains a key.
"""

from __future__ import annotations

import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from enfold.errors import ConfigError
from enfold.llm.calls import Secret
from enfold.llm.providers import Provider

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

STORED = "stored"
SECRET_VARIABLE = "ENFOLD_SECRET_KEY"  # noqa: S105 - the name of a variable
SHORTEST_SECRET = 16
"""Characters. A shorter secret could be guessed by a thief of the database."""

_EXPECTED = f"expected env:NAME, file:PATH or {STORED}; a key itself is never written here"
_SOURCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+|stored")
_KEY = re.compile(r"[\x21-\x7e]+")
"""The characters that a header can carry: ASCII without blanks and line breaks."""
_LONGEST_FILE = 65_536

_VERSION = "v1"
_SALT, _NONCE = 16, 12
_ENTRY = ("enfold", "secret key")
"""Service and user name in the keyring."""


def check_source(source: str) -> str:
    """Return the source; raise `ConfigError` if it is invalid."""
    if not _SOURCE.fullmatch(source):
        raise ConfigError(_EXPECTED)
    return source


class Keys:
    """Finds, encrypts and decrypts keys."""

    def __init__(self, variable: Callable[[str], str | None]) -> None:
        """`variable` returns the value of an environment variable, or None."""
        self._variable = variable
        self._opened: dict[tuple[str, str], Secret] = {}

    def find(
        self, source: str | None, provider: Provider, *, owner: str, sealed: str | None = None
    ) -> Secret | None:
        """Return the key of the profile `owner`; None if its provider needs none.

        `sealed` is the encrypted key from the database, if there is one.
        """
        if source is None:
            return self._usual(provider)
        kind, _, place = check_source(source).partition(":")
        if kind == "env":
            value = self._variable(place)
            if not value:
                raise ConfigError(f"the environment variable {place} is not set")
            return checked(value, f"the environment variable {place}")
        if kind == "file":
            return _read(place)
        if sealed is None:
            raise ConfigError(f"no key is stored; `enfold profiles set-key {owner}` stores one")
        return self.open(sealed, owner=owner)

    def _usual(self, provider: Provider) -> Secret | None:
        for name in provider.key_variables:
            if value := self._variable(name):
                return checked(value, f"the environment variable {name}")
        if provider.needs_key:
            names = " or ".join(provider.key_variables)
            raise ConfigError(f"there is no key: {names} is not set, and no other source is named")
        return None

    def seal(self, key: Secret, *, owner: str) -> str:
        """Return the encrypted key, which only this owner's name can decrypt."""
        checked(key.reveal(), "the key")
        salt, nonce = secrets.token_bytes(_SALT), secrets.token_bytes(_NONCE)
        cipher = _cipher(self._secret(make=True), salt)
        sealed = salt + nonce + cipher.encrypt(nonce, key.reveal().encode(), _bound_to(owner))
        return f"{_VERSION}:{urlsafe_b64encode(sealed).decode()}"

    def open(self, sealed: str, *, owner: str) -> Secret:
        """Return the decrypted key."""
        if (owner, sealed) not in self._opened:
            self._opened[owner, sealed] = Secret(_opened(sealed, self._secret(), owner))
        return self._opened[owner, sealed]

    def _secret(self, *, make: bool = False) -> Secret:
        """Return the secret that seals keys, from the environment, else from the keyring."""
        given = self._variable(SECRET_VARIABLE)
        if given:
            if len(given) < SHORTEST_SECRET:
                raise ConfigError(
                    f"{SECRET_VARIABLE} has {len(given)} characters; use at least "
                    f"{SHORTEST_SECRET}, such as those of `openssl rand -base64 32`"
                )
            return Secret(given)
        found = _from_keyring(make=make)
        if found is None:
            raise ConfigError(
                f"keys are stored only encrypted, and there is nothing to encrypt them with: set "
                f"{SECRET_VARIABLE} (such as the output of `openssl rand -base64 32`), or use a "
                "system with a keyring; env:NAME and file:PATH need neither"
            )
        return found


def checked(value: str, what: str) -> Secret:
    """Return a valid key. Errors call it by the name `what` and never contain it."""
    stripped = value.strip()
    if not stripped:
        raise ConfigError(f"{what} is empty")
    if not _KEY.fullmatch(stripped):
        raise ConfigError(f"{what} is no key: it has blanks, line breaks or unusual characters")
    return Secret(stripped)


def _read(place: str) -> Secret:
    path = Path(place).expanduser()
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST_FILE + 1).decode()
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or "it has no such home folder"
        raise ConfigError(f"the key's file {place} cannot be read: {reason}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the key's file {place} is no text") from None
    return checked(text, f"the file {place}")


def _opened(sealed: str, secret: Secret, owner: str) -> str:
    with _extra():
        from cryptography.exceptions import InvalidTag

    version, _, text = sealed.partition(":")
    try:
        data = urlsafe_b64decode(text)
        salt, nonce, rest = data[:_SALT], data[_SALT : _SALT + _NONCE], data[_SALT + _NONCE :]
        return _cipher(secret, salt).decrypt(nonce, rest, _bound_to(owner, version)).decode()
    except (InvalidTag, ValueError):
        raise ConfigError(
            f"the stored key cannot be opened: {SECRET_VARIABLE}, or the keyring's entry, is not "
            "the one that it was stored with, or the database was altered. Set that one again, or "
            f"store the key anew with `enfold profiles set-key {owner}`"
        ) from None


def _bound_to(owner: str, version: str = _VERSION) -> bytes:
    """Return the data that binds a sealed key to its owner and its format."""
    return f"{version}:{owner}".encode()


def _cipher(secret: Secret, salt: bytes) -> AESGCM:
    with _extra():
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    # The secret may be a weak passphrase, so the derivation makes guessing slow.
    derived = Scrypt(salt=salt, length=32, n=2**14, r=8, p=1).derive(secret.reveal().encode())
    return AESGCM(derived)


@contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError:
        raise ConfigError(
            "stored keys need the extra enfold[keys]; env:NAME and file:PATH do not"
        ) from None


def _from_keyring(*, make: bool) -> Secret | None:
    """Return the keyring's entry, with `make` a new one; None if there is no keyring or entry."""
    with _extra():
        import keyring
        from keyring.errors import KeyringError

    try:
        found = keyring.get_password(*_ENTRY)
        if found is None and make:
            keyring.set_password(*_ENTRY, secrets.token_urlsafe(32))
            found = keyring.get_password(*_ENTRY)  # a backend may not have stored it
    except KeyringError:
        return None
    return None if found is None else Secret(found)
