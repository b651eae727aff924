"""Interrupts: a signal while something runs ends that, in an orderly way, and not the program."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def calling_on(number: signal.Signals, act: Callable[[], object]) -> Iterator[None]:
    """While this lasts, the signal calls the function between two steps of the event loop.

    Where the system cannot do that, the signal does what it did before.
    """
    loop = asyncio.get_running_loop()
    before = signal.getsignal(number)
    try:
        loop.add_signal_handler(number, act)
    except (NotImplementedError, ValueError, RuntimeError):  # Windows, or not the main thread
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(number)
        signal.signal(number, before)
