"""Interrupts: Ctrl-C while something runs ends that, in an orderly way, and not the program."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def calling_on_interrupt(act: Callable[[], object]) -> Iterator[None]:
    """While this lasts, an interrupt calls the function between two steps of the event loop.

    Where the system cannot do that, an interrupt is what it was before.
    """
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, act)
    except (NotImplementedError, ValueError, RuntimeError):  # Windows, or not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
