"""Promises of conftest.py: no network, no settings of the machine, a separate home."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.source import ROOT


@pytest.mark.parametrize("host", ["192.0.2.1", "example.invalid", "2001:db8::1", b"198.51.100.1"])
def test_only_this_machine_may_be_connected_to(host: str | bytes) -> None:
    with pytest.raises(pytest.fail.Exception, match="reached for the network"):
        sys.audit("socket.connect", None, (host, 80))


def test_a_real_connection_is_stopped() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plug,
        pytest.raises(pytest.fail.Exception, match="reached for the network"),
    ):
        plug.connect(("192.0.2.1", 80))


def test_names_are_not_looked_up() -> None:
    with pytest.raises(pytest.fail.Exception, match="getaddrinfo to 'example"):
        socket.getaddrinfo("example.invalid", 443)


def test_datagrams_are_not_sent() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as plug,
        pytest.raises(pytest.fail.Exception, match="reached for the network"),
    ):
        plug.sendto(b"hello", ("192.0.2.1", 9))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_this_machine_can_be_reached(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection((host, port)) as plug:
            assert plug.getpeername()[1] == port


async def test_this_machine_can_be_reached_asynchronously() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(greet, "localhost", 0) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("localhost", port)
        assert await reader.read() == b"hello"
        writer.close()
        await writer.wait_closed()


def test_home_is_new_and_empty(own_home: Path) -> None:
    assert Path.home() == own_home
    assert not list(own_home.iterdir())


def test_settings_from_outside_are_cleared(tmp_path: Path) -> None:
    done = run_inner(
        tmp_path,
        "import os\n"
        "def test():\n"
        "    assert [n for n in os.environ if n.startswith('ENFOLD_')] == ['ENFOLD_DATA']\n",
        ENFOLD_DB="sqlite:///mine.db",
        ENFOLD_DATA="kept",
    )
    assert done.returncode == 0, done.stdout


def test_cases_named_after_an_address_are_refused(tmp_path: Path) -> None:
    done = run_inner(
        tmp_path,
        "import pytest\n"
        "@pytest.mark.parametrize('value', [object()], ids=str)\n"
        "def test(value): ...\n",
    )
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "give these cases names" in done.stderr


def run_inner(folder: Path, test: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A test run of its own, in the same surroundings, started with these settings."""
    (folder / "test_inner.py").write_text(test)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest"],
        cwd=folder,
        env={
            **os.environ,
            **settings,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
        },
        capture_output=True,
        text=True,
        check=False,
    )
