"""Hooks: functions that are given summarized messages, where there is no store with an outbox.

A hook is foreign code and may be slow. It runs in a thread of its own, one hand-over after the
other in the order in which they came, so whoever summarized never waits for it. What it raises is
logged, without the messages. When the program ends, what was handed over is delivered first.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from typing import Any, TypeAlias

Hook: TypeAlias = Callable[[list[Any]], object]
"""Takes the messages of one summary, oldest first. It may be a coroutine function."""

_log = logging.getLogger("enfold.flush")


def hand_over(hook: Hook, messages: Sequence[Any]) -> None:
    """Give the messages to the hook, soon and elsewhere; returns at once."""
    delivery = _worker().submit(_deliver, hook, list(messages))
    delivery.add_done_callback(partial(_log_failure, len(messages)))


def drain(seconds: float | None = None) -> bool:
    """Wait until everything was delivered; False if that took longer than so many seconds."""
    behind_all_others = _worker().submit(lambda: None)
    return not wait((behind_all_others,), seconds).not_done


@cache  # one thread for the process; the interpreter waits for it before it exits
def _worker() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="enfold-flush")


def _deliver(hook: Hook, messages: list[Any]) -> None:
    answer = hook(messages)
    if inspect.iscoroutine(answer):
        asyncio.run(answer)


def _log_failure(number: int, delivery: Future[None]) -> None:
    error = delivery.exception()
    if error is not None:
        kind = type(error).__name__
        _log.warning("memory flush hook failed with %d messages: %s", number, kind)
