"""Hearing: an answer is listened to while it passes, and read when it is whole.

Pieces go on as they come. Only the end waits, and only where a client may refer to the answer at
once: by then it has to be known here too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from enfold.server.headers import Header
from enfold.server.proxy import replies
from enfold.server.proxy.bodies import Form
from enfold.server.proxy.replies import Reply

Keep: TypeAlias = Callable[[Reply], Awaitable[None]]

_LARGE = 50_000
"""Bytes from which an answer is read beside the event loop."""
_END = re.compile(
    rb'(?:^event:|"type"\s*:)\s*"?response\.(?:completed|incomplete|failed)', re.MULTILINE
)
"""Where the last event of a stream begins that can be referred to."""
_LONGEST_END = 64


@dataclass(frozen=True)
class Heard:
    """An answer as it passed."""

    form: Form
    headers: Sequence[Header]
    chunks: list[bytes] = field(default_factory=list, repr=False)

    @cached_property
    def reply(self) -> Reply:
        """What it said."""
        reader = replies.reader(self.form, self.headers)
        for chunk in self.chunks:
            reader.feed(chunk)
        return reader.end()


class Ear:
    """Listens to one answer."""

    def __init__(self, heard: Heard, done: Callable[[Heard], None], keep: Keep | None) -> None:
        """`keep` is awaited before the client has the end, `done` is called after everything."""
        self._heard = heard
        self._done = done
        self._keep = keep
        self._is_stream = any(b"event-stream" in value for _, value in heard.headers)
        self._tail = b""
        self._waits = False

    def hear(self, chunk: bytes) -> bool:
        """Take a piece; True if it has to wait for the end."""
        self._heard.chunks.append(chunk)
        if self._keep is not None and not self._waits:
            look = self._tail + chunk
            self._tail = look[-_LONGEST_END:]
            self._waits = not self._is_stream or _END.search(look) is not None
        return self._waits

    async def ended(self) -> None:
        """All has come."""
        if self._keep is not None:
            await self._keep(await self._read())

    def close(self) -> None:
        """Nothing more comes; many clients hang up as soon as they have heard the last word."""
        self._done(self._heard)

    async def _read(self) -> Reply:
        if sum(map(len, self._heard.chunks)) < _LARGE:
            return self._heard.reply
        return await asyncio.to_thread(lambda: self._heard.reply)
