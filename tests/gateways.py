"""Gateways that a test holds in its hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from enfold.llm.calls import Call, Connection, Delta, ModelReply


class Halting:
    """A gateway that sends some text and then stops or fails."""

    def __init__(self, *pieces: str, error: Exception | None = None) -> None:
        self.pieces = pieces
        self.error = error
        self.closed = False

    async def complete(self, _connection: Connection, _call: Call) -> ModelReply:
        raise AssertionError("a turn streams")

    async def stream(
        self, _connection: Connection, _call: Call
    ) -> AsyncGenerator[Delta | ModelReply, None]:
        """The pieces, and then the wait."""
        try:
            for piece in self.pieces:
                yield Delta(piece)
            if self.error is not None:
                raise self.error
            await asyncio.Event().wait()
        finally:
            self.closed = True
