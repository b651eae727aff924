"""The environment of every test: no settings of the machine, a separate home, no network."""

from __future__ import annotations

import gc
import ipaddress
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import certifi
import pytest
from hypothesis import HealthCheck, Phase, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.databases import server, url
from tests.realmodel import model_url

__all__ = ["model_url", "server", "url"]

ROOT = Path(__file__).resolve().parent.parent
TOGETHER = (
    "tests/ui/",
    "tests/evaluation/",
    "tests/docs/test_site.py",
    "tests/server/test_processes.py",
    "tests/test_architecture.py",
    "tests/test_compose.py",
    "tests/test_plain_words.py",
)
"""Where a module's tests use one server, site, run or parsed package."""

# The same examples on every machine, unless `--hypothesis-profile=thorough` asks for a real search.
settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=50,
    # Explaining a failure traces every line, which takes minutes beside the guard of the network.
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", database=None, deadline=None, max_examples=2_000)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all homes, and of a file with one authority.

    Each HTTP client reads all authorities that the machine trusts, in fifty milliseconds; no test
    reaches a server that one of them vouches for.
    """
    folder = tmp_path_factory.mktemp("homes")
    first, end, _ = certifi.contents().partition("-----END CERTIFICATE-----\n")
    (folder / "authority.pem").write_text(first + end, encoding="ascii")
    return folder


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, homes: Path) -> Path:
    """An empty home without a keyring, and none of enfold's settings from outside."""
    for name in os.environ:
        if name.startswith("ENFOLD_") and name != "ENFOLD_DATA":
            monkeypatch.delenv(name)
    # The factory looks at all folders that it has made to find the next number.
    home = Path(tempfile.mkdtemp(dir=homes))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SSL_CERT_FILE", str(homes / "authority.pem"))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return home


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Real conversations to try things on; most machines have none."""
    named = os.environ.get("ENFOLD_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no conversations in {folder}; set ENFOLD_DATA to a folder of .jsonl files")
    return folder


class Together(LoadScopeScheduling):  # type: ignore[misc] # it has no types
    """Gives processes one test after the other, and modules of those that are to stay together."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0] if nodeid.startswith(TOGETHER) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Together:
    return Together(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while modules load, and do not look through them again afterwards.

    They hold a million and a half objects, which stay. To look through them again and again takes
    a quarter of the time of loading.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that differ between processes, and put the slowest modules first.

    A case named after an object's address has another name in every process that runs it. A long
    test at the end would let the other processes wait.
    """
    unnamed = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if unnamed:
        raise pytest.UsageError("give these cases names of their own: " + "\n".join(unnamed))
    items.sort(key=lambda item: not item.nodeid.startswith(TOGETHER))


def _forbid_network(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook, because it also sees those who took hold of `socket` before we could.

    `pytest.fail` is no `Exception`, so code that maps errors cannot turn it into one of its own.
    """
    if event in {"socket.connect", "socket.sendto", "socket.sendmsg"}:
        address = arguments[1]
    elif event == "socket.getaddrinfo":
        address = arguments[:2]
    else:
        return
    if isinstance(address, tuple) and not _is_here(address[0]):
        pytest.fail(f"a test reached for the network: {event} to {address[0]!r}")


def _is_here(host: object) -> bool:
    """Return True if the host is this machine; a name other than localhost never is."""
    if isinstance(host, bytes):
        host = host.decode()
    if host in {None, "", "localhost"}:
        return True
    try:
        address = ipaddress.ip_address(str(host))
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


sys.addaudithook(_forbid_network)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background by a shell: programs that tests start would be deaf to it as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)
