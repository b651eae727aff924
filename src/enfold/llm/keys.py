"""Keys of profiles: their sources, and their encryption in the database.

A profile names the source of its key: `env:NAME`, `file:PATH`, `stored` or `memory`. The default is
the provider's usual environment variable. A stored key is sealed with a secret that is not in the
database: `ENFOLD_SECRET_KEY`, else an entry of the system's keyring. Without either, a key is kept
in memory for one run, or in a file that only the user can read. No error message contains a key.
"""

from __future__ import annotations

import os
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote

from enfold.errors import ConfigError
from enfold.llm.calls import Secret
from enfold.llm.providers import Provider

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

STORED, MEMORY = "stored", "memory"
KeyStorage: TypeAlias = Literal["encrypted", "file", "memory"]
"""Encrypted in the database, in a file of the user's config folder, or in memory for one run."""
SECRET_VARIABLE = "ENFOLD_SECRET_KEY"  # noqa: S105 - the name of a variable
SHORTEST_SECRET = 16
"""Characters. A shorter secret could be guessed by a thief of the database."""

_EXPECTED = (
    f"expected env:NAME, file:PATH, {STORED} or {MEMORY}; a key itself is never written here"
)
_SOURCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+|stored|memory")
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

    def __init__(
        self,
        variable: Callable[[str], str | None],
        folder: Callable[[], Path] | None = None,
    ) -> None:
        """`variable` returns the value of an environment variable, or None.

        `folder` returns the folder for key files; without it no key files are written.
        """
        self._variable = variable
        self._folder = folder
        self._opened: dict[tuple[str, str], Secret] = {}
        self._remembered: dict[str, Secret] = {}

    def find(
        self, source: str | None, provider: Provider, *, owner: str, sealed: str | None = None
    ) -> Secret | None:
        """Return the key of the profile `owner`; None if its provider needs none.

        `sealed` is the encrypted key from the database, if there is one.
        """
        if source is None:
            if name := self.usual_variable(provider):
                return checked(self._variable(name) or "", f"the environment variable {name}")
            if not provider.needs_key:
                return None
            names = " or ".join(provider.key_variables)
            raise ConfigError(f"there is no key: {names} is not set, and no other source is named")
        kind, _, place = check_source(source).partition(":")
        if kind == "env":
            value = self._variable(place)
            if not value:
                raise ConfigError(f"the environment variable {place} is not set")
            return checked(value, f"the environment variable {place}")
        if kind == "file":
            return _read(place)
        if kind == MEMORY:
            if owner in self._remembered:
                return self._remembered[owner]
            raise ConfigError(
                "the key was kept in memory for one run of the server, which has ended; enter it "
                "again"
            )
        if sealed is None:
            raise ConfigError(f"no key is stored; `enfold profiles set-key {owner}` stores one")
        return self.open(sealed, owner=owner)

    def usual_variable(self, provider: Provider) -> str | None:
        """Return the provider's environment variable that is set; None if none is."""
        return next((name for name in provider.key_variables if self._variable(name)), None)

    @property
    def can_encrypt(self) -> bool:
        """True if there is a secret, or a keyring for one, to encrypt stored keys with."""
        try:
            self._secret(make=True)
        except ConfigError:
            return False
        return True

    def remember(self, key: Secret, *, owner: str) -> str:
        """Keep a key in memory for this run, and return its source."""
        self._remembered[owner] = checked(key.reveal(), "the key")
        return MEMORY

    def write_file(self, key: Secret, *, owner: str) -> str:
        """Write a key to a file that only the user can read, and return its source."""
        text = checked(key.reveal(), "the key").reveal()
        if self._folder is None:
            raise ConfigError("there is no folder for key files")
        path = self._folder() / quote(owner, safe=" ")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{text}\n")
        except OSError as error:
            raise ConfigError(
                f"the key's file {path} cannot be written: {error.strerror}"
            ) from None
        return f"file:{path}"

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
        raise ConfigError(f"{what} is not a key: it has blanks, line breaks or unusual characters")
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
        raise ConfigError(f"the key's file {place} is not a text") from None
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
