"""The talk on a terminal. Its modules load Textual with themselves, so they are loaded late."""

from __future__ import annotations

import signal

from enfold.cli.chat.interrupts import calling_on
from enfold.errors import ConfigError
from enfold.talk.talk import Talk


async def show(talk: Talk, *, light: bool = False) -> None:
    """Show the talk until somebody leaves; then the terminal is as it was."""
    try:
        from enfold.cli.chat.terminal.app import ChatApp
    except ModuleNotFoundError as error:
        if error.name != "textual":
            raise
        raise ConfigError(
            "the chat on a terminal needs Textual, which is not installed; install enfold[chat], "
            "or pipe a question in"
        ) from None
    app = ChatApp(talk, light=light)
    with (
        calling_on(signal.SIGINT, app.action_interrupt),
        calling_on(signal.SIGTERM, app.exit),
    ):
        await app.run_async()
    await app.settled()
