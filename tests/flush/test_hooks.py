"""Hooks are given what was summarized, in the background, in order, and before the program ends."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import threading

import pytest

from enfold import flush


def test_handing_over_does_not_block() -> None:
    release = threading.Event()
    received: list[list[str]] = []

    def slow(messages: list[str]) -> None:
        assert release.wait(10)
        received.append(messages)

    flush.hand_over(slow, ("a", "b"))
    flush.hand_over(received.append, ("c",))
    assert received == []
    assert not flush.drain(0)
    release.set()
    assert flush.drain(10)
    assert received == [["a", "b"], ["c"]]


def test_a_coroutine_function_will_do() -> None:
    received: list[list[str]] = []

    async def remember(messages: list[str]) -> None:
        await asyncio.sleep(0)
        received.append(messages)

    flush.hand_over(remember, ("a",))
    assert flush.drain(10)
    assert received == [["a"]]


def test_errors_of_a_hook_are_logged_without_messages(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(messages: list[str]) -> None:
        raise OSError(f"cannot keep {messages}")

    with caplog.at_level(logging.WARNING, "enfold.flush"):
        flush.hand_over(broken, ("a secret",))
        assert flush.drain(10)
    assert "failed with 1 messages: OSError" in caplog.text
    assert "secret" not in caplog.text


def test_a_program_that_ends_delivers_first() -> None:
    program = (
        "import time\n"
        "from enfold import flush\n"
        "flush.hand_over(lambda messages: (time.sleep(0.2), print(messages)), ['a'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['a']\n"
