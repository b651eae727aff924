"""Run a program in the foreground: it has the terminal, and the signals that this process gets.

The program stays in this process's group, so that the terminal's signals (Ctrl+C, a new window
size) reach it directly. Signals that other processes send to this process are passed on.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from enfold.errors import ConfigError

_SIGNALS_EXIT = 128
"""Shells report a program that a signal ended with this number plus the signal's."""
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGWINCH", "SIGUSR1", "SIGUSR2", "SIGCONT")


def run_in_foreground(
    program: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Run the program to its end; return its exit code, 128 + N if signal N ended it."""
    if sys.platform == "win32":
        raise ConfigError(
            "enfold wrap needs Linux or macOS; use enfold wrap --print and set the variables"
        )
    passed_on = {getattr(signal, name) for name in _NAMES}
    with _blocked({*passed_on, signal.SIGCHLD}) as mask:
        # The signals are blocked here and taken from the queue below; the program must not
        # inherit that.
        pid = os.posix_spawn(
            program,
            [program, *arguments],
            environment,
            setsigmask=mask,
            setsigdef=[signal.SIGPIPE],
        )
        while True:
            number, is_from_terminal = _wait_for_signal({*passed_on, signal.SIGCHLD})
            if number == signal.SIGCHLD:
                code = _reap(pid)
                if code is not None:
                    return code
            elif not is_from_terminal:
                _send(pid, number)


@contextmanager
def _blocked(signals: set[signal.Signals]) -> Iterator[set[int]]:
    """Block signals; yield the mask before."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield {int(each) for each in mask}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _wait_for_signal(signals: set[signal.Signals]) -> tuple[int, bool]:
    """Return the next signal, and True if the program got it from the terminal too."""
    if hasattr(signal, "sigwaitinfo"):
        info = signal.sigwaitinfo(signals)
        # The kernel sends the terminal's signals, with a positive code, to the whole group. The
        # shell sends SIGCONT to the whole group as well.
        return info.si_signo, info.si_code > 0 or info.si_signo == signal.SIGCONT
    number = signal.sigwait(signals)
    to_group = {signal.SIGINT, signal.SIGQUIT, signal.SIGWINCH, signal.SIGCONT}
    return number, number in to_group and os.isatty(0)


def _reap(pid: int) -> int | None:
    """Return the program's exit code; None while it runs. Stop with it when it is stopped."""
    ended, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
    if ended == 0:
        return None
    if os.WIFSTOPPED(status):
        if os.isatty(0):
            # The shell takes the terminal back only if this process stops too.
            os.kill(os.getpid(), signal.SIGSTOP)
            _send(pid, signal.SIGCONT)
        return None
    code = os.waitstatus_to_exitcode(status)
    return _SIGNALS_EXIT - code if code < 0 else code


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it has just ended: its exit code comes next
