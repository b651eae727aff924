"""The talk on a terminal. Its modules load Textual with themselves, so they are loaded late."""

from __future__ import annotations

import signal

from enfold.cli.chat.talk import Talk


async def show(talk: Talk, *, light: bool = False) -> None:
    """Show the talk until somebody leaves; then the terminal is as it was."""
    from enfold.cli.chat.interrupts import calling_on
    from enfold.cli.chat.terminal.app import ChatApp

    app = ChatApp(talk, light=light)
    with (
        calling_on(signal.SIGINT, app.action_interrupt),
        calling_on(signal.SIGTERM, app.exit),
    ):
        await app.run_async()
    await app.settled()
